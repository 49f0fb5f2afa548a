"""Optimizers and schedules with their options, for recording PyTorch's answers and for comparing with them. `lib` is
torchlite or torch.
"""

OPTIMIZERS = {
    "SGD": {"lr": 0.1},
    "SGD momentum": {"lr": 0.1, "momentum": 0.9, "dampening": 0.3, "weight_decay": 0.1},
    "SGD nesterov": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "maximize": True},
    "Adam": {"lr": 0.1},
    "Adam amsgrad": {"lr": 0.1, "amsgrad": True, "weight_decay": 0.1},
    "AdamW": {"lr": 0.1, "betas": (0.8, 0.9)}, "RMSprop": {"lr": 0.1},
    "RMSprop centered": {"lr": 0.1, "centered": True, "momentum": 0.5, "weight_decay": 0.1},
    "Adagrad": {"lr": 0.1, "lr_decay": 0.1, "initial_accumulator_value": 0.1},
    "Adadelta": {"lr": 0.5, "weight_decay": 0.1}, "Adamax": {"lr": 0.1},
    "NAdam": {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True},
    "RAdam": {"lr": 0.1}, "ASGD": {"lr": 0.1, "lambd": 0.1, "t0": 2}, "Rprop": {"lr": 0.1}, "Adafactor": {"lr": 0.1},
    "Muon": {"lr": 0.1}, "LBFGS": {"lr": 0.5, "max_iter": 4},
    "LBFGS wolfe": {"line_search_fn": "strong_wolfe", "max_iter": 4},
}  # fmt: skip


def problem(lib, name):
    """Two parameters and a loss of them with curvature of all kinds."""
    shapes = ((3, 2), (2, 2)) if name.startswith("Muon") else ((3, 2), (4,))
    params = [
        lib.nn.Parameter(
            (lib.arange(12, dtype=lib.float32)[: shape[0] * (shape[1] if len(shape) > 1 else 1)].reshape(shape) - 4.5)
            * 0.2
        )
        for shape in shapes
    ]

    def loss():
        return sum(((param - 0.3) ** 2).sum() + (param**4).sum() * 0.1 + (param * 2).cos().sum() for param in params)

    return params, loss


def trajectory(lib, name, steps=5):
    """The parameters after each step, rounded."""
    params, loss = problem(lib, name)
    optimizer = getattr(lib.optim, name.split()[0])(params, **OPTIMIZERS[name])

    def closure():
        optimizer.zero_grad()
        value = loss()
        value.backward()
        return value

    found = []
    for _ in range(steps):
        if name.startswith("LBFGS"):
            optimizer.step(closure)
        else:
            closure()
            optimizer.step()
        found.append([round(float(x), 6) for param in params for x in param.detach().reshape(-1)])
    return found


def _sequence(schedules, optimizer):
    return schedules.SequentialLR(
        optimizer,
        [
            schedules.LinearLR(optimizer, 0.1, 1.0, 4),
            schedules.CosineAnnealingLR(optimizer, 6),
            schedules.ExponentialLR(optimizer, 0.8),
        ],
        [4, 9],
    )


SCHEDULES = {
    "LambdaLR": lambda s, o: s.LambdaLR(o, [lambda e: 0.9**e, lambda e: 1 / (e + 1)]),
    "MultiplicativeLR": lambda s, o: s.MultiplicativeLR(o, lambda e: 0.95),
    "StepLR": lambda s, o: s.StepLR(o, 3),
    "MultiStepLR": lambda s, o: s.MultiStepLR(o, [2, 5, 5, 9]),
    "ConstantLR": lambda s, o: s.ConstantLR(o, 0.3, 4),
    "LinearLR": lambda s, o: s.LinearLR(o, 0.2, 0.9, 6),
    "ExponentialLR": lambda s, o: s.ExponentialLR(o, 0.9),
    "CosineAnnealingLR": lambda s, o: s.CosineAnnealingLR(o, 5, 0.01),
    "PolynomialLR": lambda s, o: s.PolynomialLR(o, 7, 2.0),
    "CyclicLR": lambda s, o: s.CyclicLR(o, [0.01, 0.02], [0.1, 0.3], 3, 2, mode="triangular2"),
    "CyclicLR exp": lambda s, o: s.CyclicLR(o, 0.01, 0.1, 3, mode="exp_range", gamma=0.9),
    "CosineAnnealingWarmRestarts": lambda s, o: s.CosineAnnealingWarmRestarts(o, 3, 2, 0.01),
    "OneCycleLR": lambda s, o: s.OneCycleLR(o, 0.3, 20),
    "OneCycleLR three": lambda s, o: s.OneCycleLR(
        o, [0.3, 0.5], epochs=4, steps_per_epoch=5, three_phase=True, anneal_strategy="linear"
    ),
    "SequentialLR": _sequence,
    "ChainedScheduler": lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 3), s.ExponentialLR(o, 0.9)]),
}


def two_groups(lib, **options):
    """An optimizer with two groups of different rates."""
    first, second = (lib.nn.Parameter(lib.zeros(2)) for _ in range(2))
    return lib.optim.SGD([{"params": [first], "lr": 0.1}, {"params": [second], "lr": 0.05}], momentum=0.9, **options)


def rates(lib, name, epochs=12):
    """Rates and momenta of both groups at each epoch."""
    optimizer = two_groups(lib)
    schedule = SCHEDULES[name](lib.optim.lr_scheduler, optimizer)
    found = []
    for _ in range(epochs):
        optimizer.step()
        found.append([round(float(group[key]), 9) for group in optimizer.param_groups for key in ("lr", "momentum")])
        schedule.step()
    return found
