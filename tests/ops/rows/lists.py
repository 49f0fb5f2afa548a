"""Lists of tensors in one call."""

from tests.ops.table import A, S, row


def clipped(lib, most, value, *grads):
    """The total norm of gradients, the gradients clipped by it, and these clipped by value."""
    parameters = [lib.nn.Parameter(lib.zeros_like(grad)) for grad in grads]
    for parameter, grad in zip(parameters, grads, strict=True):
        parameter.grad = grad.detach().clone()
    total = lib.nn.utils.clip_grad_norm_(parameters, most)
    by_norm = [parameter.grad.clone() for parameter in parameters]
    lib.nn.utils.clip_grad_value_(parameters, value)
    return [total, *by_norm, *(parameter.grad for parameter in parameters)]


row(
    "_norm_of_all",
    S(1.0, 0.1, A((3, 4)), A((5,)), A((0,)), A(())),
    S(1e6, 0.5, A((70, 80)), A((4,))),
    S(0.0, 0.0, A((2, 3)), A((3, 2))),
    oracle=clipped,
    covers=("_scale_all", "_clamp_all"),
    grad=False,
    meta=False,
    noncontiguous=False,
)
