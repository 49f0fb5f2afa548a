"""Multi-tensor optimizer steps: four steps over two packed parameters and one large one."""

from tests.ops.table import A, S, row


def steps(name, **options):
    """What the optimizer `name` makes of three parameters in four steps with growing gradients."""

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
