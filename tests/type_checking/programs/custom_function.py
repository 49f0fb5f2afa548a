"""A custom autograd.Function, checked by finite differences."""

from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite.autograd import Function, gradcheck
from torchlite.autograd.function import once_differentiable


class Swish(Function):
    @staticmethod
    def forward(ctx, x, beta=1.0):
        sigmoid = torch.sigmoid(beta * x)
        ctx.save_for_backward(x, sigmoid)
        ctx.beta = beta
        return x * sigmoid

    @staticmethod
    def backward(ctx, grad_output):
        x, sigmoid = ctx.saved_tensors
        beta = ctx.beta
        return grad_output * (sigmoid + beta * x * sigmoid * (1 - sigmoid)), None


class Clip(torch.autograd.Function):
    """The gradient passes as if nothing was clipped."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, low: float, high: float) -> Tensor:
        ctx.set_materialize_grads(False)
        return x.clamp(low, high)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return grad, None, None


def swish(x: Tensor, beta: float = 1.0) -> Tensor:
    return Swish.apply(x, beta)


x = torch.linspace(-2, 2, 7, dtype=torch.float64, requires_grad=True)
assert gradcheck(swish, (x,), eps=1e-6, atol=1e-4)
y = Clip.apply(swish(x), -0.1, 1.0).sum()
y.backward()
assert x.grad is not None
(second,) = torch.autograd.grad(swish(x).sum(), x, create_graph=True)
print(y.item(), x.grad.tolist())
assert torch.allclose(x.grad, second)
