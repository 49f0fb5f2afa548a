"""How the programs here print their numbers: "=", a name and up to six numbers a line."""

from typing import Any

import torch


def show(name: str, value: Any) -> None:
    """Print a number, several, or a tensor: of a large one the sum, the norm and the first four elements."""
    x = torch.as_tensor(value).detach().to(torch.float64).flatten()
    numbers = x.tolist() if x.numel() <= 6 else [x.sum().item(), x.norm().item(), *x[:4].tolist()]
    print("=", name, *(f"{number:.9g}" for number in numbers), flush=True)


def gradients(module: torch.nn.Module) -> torch.Tensor:
    """The norm of each parameter's gradient."""
    return torch.stack([p.grad.norm() for p in module.parameters() if p.grad is not None])
