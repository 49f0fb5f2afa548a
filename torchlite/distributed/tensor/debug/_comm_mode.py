"""`CommDebugMode`: counts the collectives of DTensors."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.autograd.hook_runner import CURRENT_PASSES

from .._collective_utils import OBSERVERS

__all__ = ["CommDebugMode"]


def _collective_op_key(name: str) -> Any:
    """Return the key of a collective in `torch.ops`."""
    return getattr(torch.ops.c10d if name.endswith("_") else torch.ops.c10d_functional, name)


class CommDebugMode:
    """Context manager that counts the collectives of DTensors, by kind and by running module.

    >>> import torchlite as torch
    >>> import torchlite.distributed as dist
    >>> from torchlite.distributed.tensor import Replicate, Shard, distribute_tensor
    >>> from torchlite.distributed.tensor.debug import CommDebugMode
    >>> dist.init_process_group("gloo", rank=0, world_size=1)
    >>> mesh = dist.init_device_mesh("cpu", (1,))
    >>> x = distribute_tensor(torch.ones(4), mesh, [Shard(0)])
    >>> with CommDebugMode() as counted:
    ...     x = x.redistribute(mesh, [Replicate()])
    >>> counted.get_total_counts(), counted.get_comm_counts()[torch.ops.c10d_functional.all_gather_into_tensor]
    (1, 1)
    >>> dist.destroy_process_group()
    """

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.comm_counts: dict[Any, int] = defaultdict(int)
        self.comm_module_counts: dict[str, dict[str, dict[Any, int]]] = {}
        self._modules: list[str] = []
        self._parameters: dict[str, dict[str, Any]] = {}
        self._placements: dict[str, dict[str, Any]] = {}
        self._handles: list[Any] = []

    def get_total_counts(self) -> int:
        """Return the total count."""
        return sum(self.comm_counts.values())

    def get_comm_counts(self) -> dict[Any, int]:
        """Return the counts by kind: `torch.ops.c10d_functional.all_reduce` and others."""
        return self.comm_counts

    def get_parameter_info(self) -> dict[str, dict[str, Any]]:
        """Return the parameters of executed modules, by the modules' names."""
        return self._parameters

    def get_sharding_info(self) -> dict[str, Any]:
        """Return the placements of DTensor parameters."""
        return {f"{module}.{name}": p for module, found in self._placements.items() for name, p in found.items()}

    def _count_collective(self, name: str, tensor: torch.Tensor) -> None:
        self.comm_counts[_collective_op_key(name)] += 1
        phase = "backward" if CURRENT_PASSES.runs else "forward"
        for module in dict.fromkeys(["Global", *self._modules]):
            counts = self.comm_module_counts.setdefault(
                module, {"forward": defaultdict(int), "backward": defaultdict(int)}
            )
            counts[phase][_collective_op_key(name)] += 1

    def _enter_module(self, module: nn.Module, inputs: Any) -> None:
        name = type(module).__name__
        self._modules.append(f"{self._modules[-1]}.{name}" if self._modules else name)
        own = dict(module.named_parameters(recurse=False))
        self._parameters[self._modules[-1]] = {key: p.data for key, p in own.items()}
        placed = {key: p.placements for key, p in own.items() if hasattr(p, "placements")}
        if placed:
            self._placements[self._modules[-1]] = placed

    def _leave_module(self, module: nn.Module, inputs: Any, outputs: Any) -> None:
        self._modules.pop()

    def __enter__(self) -> CommDebugMode:
        self._clear()
        OBSERVERS.append(self._count_collective)
        self._handles = [
            nn.modules.module.register_module_forward_pre_hook(self._enter_module),
            nn.modules.module.register_module_forward_hook(self._leave_module, always_call=True),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        OBSERVERS.remove(self._count_collective)
        for handle in self._handles:
            handle.remove()

    def generate_comm_debug_tracing_table(self, noise_level: int = 3) -> str:
        """Returns the counts of each module as text.

        Args:
            noise_level: Has no effect: the table has counts of collectives alone.
        """
        lines = []
        for module, phases in sorted(self.comm_module_counts.items(), key=lambda item: (item[0] != "Global", item[0])):
            lines.append(f"{'  ' * module.count('.')}{module}")
            for phase, counts in phases.items():
                lines += [f"{'  ' * module.count('.')}  {phase}: {op}: {count}" for op, count in counts.items()]
        return "\n".join(lines)

    def log_comm_debug_tracing_table_to_file(self, file_name: str = "comm_mode_log.txt", noise_level: int = 3) -> None:
        """Appends the counts of each module to a file.

        Args:
            file_name: The name of the file. Default: ``"comm_mode_log.txt"``.
            noise_level: Has no effect.
        """
        with open(file_name, "a") as file:
            file.write(self.generate_comm_debug_tracing_table(noise_level) + "\n")
