"""Multi-tensor optimizer steps: four steps over two packed parameters and one large one. Clipping of gradients."""

from tests.ops.op_db import A, S, row


def steps(name, **options):
    """Results of the optimizer `name` for three parameters in four steps with growing gradients."""

    def run(lib, *values):
        params = [
            lib.nn.Parameter(value.detach().clone())
            for value in (*values, lib.linspace(-1, 1, 17000, dtype=lib.float64))
        ]
        optimizer = getattr(lib.optim, name)(params, **options)
        for number in range(4):
            for param in params:
                param.grad = (param.detach() * 0.5 + 0.1) * (number + 1)
            optimizer.step()
        # The large parameter in brief.
        return (
            params[0].detach(),
            params[1].detach(),
            params[2].detach()[::1000],
            *optimizer.state_dict()["state"].get(0, {}).values(),
        )

    return run


VALUES = S(A((3, 4), grad=False), A((5,), grad=False))
ONCE = {"grad": False, "meta": False, "noncontiguous": False}
row("_fused_adam", VALUES, oracle=steps("AdamW", lr=0.1, amsgrad=True), **ONCE)
row("_fused_sgd", VALUES, oracle=steps("SGD", lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1), **ONCE)
row("_fused_rmsprop", VALUES, oracle=steps("RMSprop", lr=0.1, momentum=0.5, centered=True, weight_decay=0.1), **ONCE)
row("_fused_adagrad", VALUES, oracle=steps("Adagrad", lr=0.1, lr_decay=0.2, weight_decay=0.1, maximize=True), **ONCE)


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
    "_total_norm",
    S(1.0, 0.1, A((3, 4)), A((5,)), A((0,)), A(())),
    S(1e6, 0.5, A((70, 80)), A((4,))),
    S(0.0, 0.0, A((2, 3)), A((3, 2))),
    oracle=clipped,
    covers=("_scale_all", "_clamp_all"),
    **ONCE,
)
