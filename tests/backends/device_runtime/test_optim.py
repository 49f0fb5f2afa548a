"""Optimizer steps on OpenCL devices: the fused kernels against the ops' composites on the CPU, and that they work in
place without waiting.
"""

import itertools

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import REGISTRY, table_of

RULES = {
    "_fused_adam": (
        3,
        [
            (3, 0.01, 0.9, 0.99, 1e-8, 0.0, False, False),
            (1, 0.1, 0.8, 0.95, 1e-3, 0.1, True, True),
            (7, 0.1, 0.8, 0.95, 1e-3, 0.1, False, False),
        ],
    ),
    "_fused_sgd": (
        1,
        [
            (False, 0.1, 0.9, 0.0, 0.0, False, False),
            (False, 0.1, 0.9, 0.2, 0.1, True, True),
            (True, 0.1, 0.9, 0.2, 0.1, False, False),
        ],
    ),
    "_fused_rmsprop": (3, [(0.1, 0.9, 1e-6, 0.0, 0.0, False), (0.1, 0.8, 1e-3, 0.5, 0.1, True)]),
    "_fused_adagrad": (1, [(3, 0.1, 0.2, 1e-8, 0.0, False), (1, 0.1, 0.0, 1e-3, 0.1, True)]),
}
SIZES = {"one": [(40, 41)], "few": [(3, 4), (5,), (), (0, 2), (17, 16)], "many": [(n,) for n in range(1, 36)]}
# grad_scale and found_inf
SCALERS = {
    name: [()] if name == "_fused_rmsprop" else [(None, None), (3.0, None), (None, 0.0), (3.0, 0.0), (3.0, 1.0)]
    for name in RULES
}


ROUNDING = {np.float32: {"rtol": 2e-5, "atol": 1e-6}, np.float64: {"rtol": 1e-12, "atol": 1e-13}}
CASES = [(name, i, "few", dtype) for name, (_, cases) in RULES.items() for i in range(len(cases)) for dtype in ROUNDING]


@pytest.mark.parametrize(
    ("name", "case", "shapes", "dtype"),
    [*CASES, ("_fused_adam", 0, "one", np.float32), ("_fused_adam", 1, "many", np.float32)],
)
def test_fused_step_is_the_composites(opencl, rng, name, case, shapes, dtype):
    most, cases = RULES[name]
    device, cpu = table_of(torch.device(opencl)), table_of(torch.device("cpu"))
    shapes = SIZES[shapes]
    total = sum(int(np.prod(s)) for s in shapes)
    above = 10 if name == "_fused_rmsprop" else 0  # mean squares lie above squared means
    params, grads = ([rng.standard_normal(s).astype(dtype) for s in shapes] for _ in range(2))
    for present in ([True] * most, [True] + [False] * (most - 1), [True, False, True][:most], [False] * most):
        if name != "_fused_sgd" and not present[0] or name == "_fused_adam" and not present[min(1, most - 1)]:
            continue
        states = [
            np.abs(rng.standard_normal(total)).astype(dtype) + above * (i == 0) if there else None
            for i, there in enumerate(present)
        ]
        for scaler in SCALERS[name] if dtype is np.float32 else SCALERS[name][-1:]:
            given = [None if x is None else np.array(x, np.float32) for x in scaler]
            hosts = (
                [p.copy() for p in params],
                [g.copy() for g in grads],
                [None if s is None else s.copy() for s in states],
            )
            REGISTRY[name].composite(cpu, hosts[0], hosts[1], *hosts[2], {}, *cases[case], *given)
            theirs = [
                [None if x is None else device.from_numpy(x) for x in arrays] for arrays in (params, grads, states)
            ]
            there = [None if x is None else device.from_numpy(x) for x in given]
            getattr(device, name)(theirs[0], theirs[1], *theirs[2], {}, *cases[case], *there)
            for host, found in zip(itertools.chain(*hosts), itertools.chain(*theirs), strict=True):
                if host is not None:
                    np.testing.assert_allclose(device.to_numpy(found), host, **ROUNDING[dtype])


@pytest.mark.parametrize("name", ["AdamW", "SGD", "RMSprop", "Adagrad"])
def test_parameters_and_states_are_updated_in_place(opencl, name):
    """Views of parameters and of states see every step; parameters that are views of one tensor, and gradients of any
    layout, are taken.
    """
    base = torch.linspace(-1, 1, 60, device=opencl)
    params = [torch.nn.Parameter(part) for part in (base[:20], base[20:50].view(5, 6))]
    views = [p.detach().view(-1)[3:] for p in params]
    optimizer = getattr(torch.optim, name)(params, lr=0.1)
    expected = [p.detach().cpu().clone().requires_grad_() for p in params]
    on_host = getattr(torch.optim, name)(expected, lr=0.1)
    for _ in range(3):
        for p, q in zip(params, expected, strict=True):
            q.grad = torch.sin(q.detach() * 3)
            p.grad = q.grad.t().contiguous().to(opencl).t() if p.ndim == 2 else q.grad.to(opencl)
        optimizer.step()
        on_host.step()
    for view, p, q in zip(views, params, expected, strict=True):
        assert torch.equal(view, p.detach().view(-1)[3:]) and torch.allclose(p.cpu(), q, atol=1e-6)
