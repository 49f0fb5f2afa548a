"""Saved-tensor hooks and other tools on the recorded graph."""

from __future__ import annotations

from .._dispatch.graph import AccumulateGrad, Node, bump
from .._dispatch.hooks import saved_tensor_hooks
from .._dispatch.interceptors import activate


class saved_tensors_hooks:
    """Inside, what ops save for backward goes through `pack_hook(tensor)`, and comes back through
    `unpack_hook(packed)`.

    >>> import torchlite as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(), torch.from_numpy):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pair = (pack_hook, unpack_hook)

    def __enter__(self):
        saved_tensor_hooks.stack = [*saved_tensor_hooks.stack, self.pair]
        activate(1)

    def __exit__(self, *exc):
        saved_tensor_hooks.stack = saved_tensor_hooks.stack[:-1]
        activate(-1)


class disable_saved_tensors_hooks:
    """Inside, setting saved-tensor hooks raises RuntimeError with this message."""

    def __init__(self, error_message: str):
        self.message = error_message

    def __enter__(self):
        saved_tensor_hooks.stack = [*saved_tensor_hooks.stack, None]

    def __exit__(self, *exc):
        saved_tensor_hooks.stack = saved_tensor_hooks.stack[:-1]


class save_on_cpu(saved_tensors_hooks):
    """Inside, what ops save for backward is kept on the CPU and brought back when needed."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda"):
        super().__init__(lambda tensor: (tensor.device, tensor.cpu()), lambda packed: packed[1].to(packed[0]))


def get_gradient_edge(tensor):
    """(node, output index) where the tensor's gradient arrives."""
    if tensor._node is None:
        raise RuntimeError("It is not possible to get the gradient edge for a Tensor that does not require gradients")
    node = tensor.grad_fn
    return (AccumulateGrad(tensor), 0) if node is None else (node, tensor.output_nr)


def register_multi_grad_hook(tensors, fn, *, mode: str = "all"):
    """Call `fn` with the gradients of all the tensors once all are computed (mode "all"), or with the first one that is
    (mode "any").
    """
    count = len(tensors)
    found: dict[int, object] = {}

    def one(position):
        def hook(g):
            if mode == "any":
                if not found:
                    found[position] = g
                    fn(g)
                return
            found[position] = g
            if len(found) == count:
                fn([found.get(i) for i in range(count)])
                found.clear()

        return hook

    handles = [t.register_hook(one(i)) for i, t in enumerate(tensors)]

    class Handle:
        def remove(self):
            """Take all the hooks away."""
            for handle in handles:
                handle.remove()

    return Handle()


def increment_version(tensor) -> None:
    """Count an in-place change that was made behind autograd's back."""
    for item in tensor if isinstance(tensor, (tuple, list)) else (tensor,):
        bump(item)


__all__ = [
    "Node",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]
