"""Every implementation of an optimizer's step against its formula, over flags and dtypes.

The reference evaluates the formula's text with NumPy in float64, by independent rules.
"""

import ast
import itertools
import operator

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import REGISTRY, table_of
from torchlite._types.optimizer_formulas import ADAGRAD, ADAM, RMSPROP, SGD, find_names
from torchlite_backends.cc import native_optim
from torchlite_backends.cc.device import Device

OPERATORS = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv}
FUNCTIONS = {"sqrt": np.sqrt, "maximum": np.maximum, "bias_correction": lambda beta, step: 1 - beta**step}


def value(node, names):
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.IfExp):
        return value(node.body if value(node.test, names) else node.orelse, names)
    if isinstance(node, ast.UnaryOp):
        return -value(node.operand, names)
    if isinstance(node, ast.BinOp):
        return OPERATORS[type(node.op)](value(node.left, names), value(node.right, names))
    return FUNCTIONS[node.func.id](*[value(part, names) for part in node.args])


def run_statements(statements, names):
    for s in statements:
        if isinstance(s, ast.If):
            given = names[s.test.id]  # a state, None, or a number
            run_statements(s.body if isinstance(given, np.ndarray | np.generic) or given else s.orelse, names)
        else:
            names[s.targets[0].id] = value(s.value, names)


def reference(formula, param, grad, states, options):
    """The parameter and states after one step."""
    names = dict(zip(formula.options, options, strict=True)) | {"param": param, "grad": grad, **states}
    run_statements(formula.scalars, names)
    run_statements(formula.update, names)
    return names["param"], {name: names[name] for name, state in states.items() if state is not None}


def flags(**choices):
    return [dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())]


# The optimizer's class, its op and formula, and all combinations of its options.
BOTH = (False, True)
ADAM_FLAGS = flags(amsgrad=BOTH, maximize=BOTH, weight_decay=(0.0, 0.1))
CASES = {
    "Adam": ("_fused_adam", ADAM, ADAM_FLAGS),
    "AdamW": ("_fused_adam", ADAM, ADAM_FLAGS),
    "SGD": (
        "_fused_sgd",
        SGD,
        [
            case
            for case in flags(
                momentum=(0.0, 0.9), dampening=(0.0, 0.3), nesterov=BOTH, maximize=BOTH, weight_decay=(0.0, 0.1)
            )
            if not (case["nesterov"] and (case["dampening"] or not case["momentum"]))
        ],
    ),
    "RMSprop": (
        "_fused_rmsprop",
        RMSPROP,
        flags(centered=BOTH, momentum=(0.0, 0.5), maximize=BOTH, weight_decay=(0.0, 0.1)),
    ),
    "Adagrad": ("_fused_adagrad", ADAGRAD, flags(lr_decay=(0.0, 0.1), maximize=BOTH, weight_decay=(0.0, 0.1))),
}
SHAPES = ((3, 5), (), (7,))
STEPS = 3


def states_of(formula, case):
    """The names of the states that an optimizer with these options has."""
    wanted = {"max_exp_avg_sq": case.get("amsgrad"), "grad_avg": case.get("centered")}
    wanted["momentum_buffer"] = case.get("momentum")
    return [name for name in formula.states if wanted.get(name, True)]


def options_of(name, case, step):
    """The formula's options for one step of an optimizer."""
    known = {
        "lr": 0.1, "beta1": 0.8, "beta2": 0.9, "eps": 1e-3, "alpha": 0.9, "decoupled": name == "AdamW", "step": step,
        "first": step == 1, **case,
    }  # fmt: skip
    return [known[option] for option in CASES[name][1].options]


def gradients(step):
    rng = np.random.default_rng(step)
    return [rng.standard_normal(shape) for shape in SHAPES]


def start():
    rng = np.random.default_rng(99)
    return [rng.standard_normal(shape) for shape in SHAPES]


def expected(name, case, dtype="float64", scale=None):
    """The parameters after STEPS steps, from values rounded to a dtype."""
    _, formula, _ = CASES[name]
    params = [p.astype(dtype).astype("f8") for p in start()]
    present = states_of(formula, case)
    states = [{s: np.zeros(p.shape) if s in present else None for s in formula.states} for p in params]
    for step in range(1, STEPS + 1):
        for i, grad in enumerate(gradients(step)):
            grad = grad.astype(dtype).astype("f8") / (scale or 1)
            params[i], new = reference(formula, params[i], grad, states[i], options_of(name, case, step))
            states[i].update(new)
    return params


def optimize(name, case, device="cpu", dtype=torch.float64, scale=None, **more):
    """The parameters after STEPS steps of the optimizer's class."""
    options = {"lr": 0.1, "eps": 1e-3} if name != "SGD" else {"lr": 0.1}
    options |= {"betas": (0.8, 0.9)} if name.startswith("Adam") else {"alpha": 0.9} if name == "RMSprop" else {}
    params = [torch.tensor(p).to(device, dtype) for p in start()]
    optimizer = getattr(torch.optim, name)(params, **options, **case, **more)
    if scale is not None:
        optimizer.grad_scale = torch.tensor(scale, device=device)
        optimizer.found_inf = torch.tensor(0.0, device=device)
    for step in range(1, STEPS + 1):
        for param, grad in zip(params, gradients(step), strict=True):
            param.grad = torch.tensor(grad).to(device, dtype)
        optimizer.step()
    if scale is not None:  # a step that the scaler leaves out
        optimizer.found_inf = torch.tensor(1.0, device=device)
        optimizer.step()
    return [param.cpu().double().numpy() for param in params]


ALL = [(name, i) for name, (_, _, cases) in CASES.items() for i in range(len(cases))]
CLOSE = {torch.float64: (1e-10, 1e-12), torch.float32: (2e-5, 2e-6), torch.bfloat16: (0.05, 0.05)}


def check(found, right, dtype=torch.float64):
    rtol, atol = CLOSE[dtype]
    for a, b in zip(found, right, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)


def numpy_dtype(dtype):
    return "float32" if dtype is not torch.float64 else "float64"


@pytest.mark.parametrize("dtype", CLOSE)
@pytest.mark.parametrize(("name", "number"), ALL)
def test_single_tensors(name, number, dtype, device):
    """The update by tensor methods, which serves half precision, recorded steps and mixed dtypes."""
    case = CASES[name][2][number]
    check(optimize(name, case, device, dtype, differentiable=True), expected(name, case, numpy_dtype(dtype)), dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize(("name", "number"), ALL)
def test_fused_kernels(name, number, dtype, device):
    case = CASES[name][2][number]
    check(optimize(name, case, device, dtype), expected(name, case, numpy_dtype(dtype)), dtype)


@pytest.mark.parametrize(("name", "number"), [(name, i) for name, i in ALL if name != "RMSprop"])
def test_gradient_scaler(name, number, device):
    """Gradients divided by `grad_scale`, and a step left out for `found_inf`."""
    case = CASES[name][2][number]
    found = optimize(name, case, device, torch.float32, scale=4.0, fused=True)
    check(found, expected(name, case, "float32", scale=4.0), torch.float32)


@pytest.mark.parametrize(("name", "number"), [(name, i) for name, i in ALL if name in ("Adam", "AdamW", "RMSprop")])
def test_capturable(name, number, device):
    """The count of steps, and what depends on it, on the device."""
    case = CASES[name][2][number]
    check(optimize(name, case, device, torch.float32, capturable=True), expected(name, case, "float32"), torch.float32)


def fused(name, case, run, dtype, step_of=lambda step: step):
    """The parameters after STEPS calls of a kernel or composite."""
    op_name, formula, _ = CASES[name]
    params, present = [p.astype(dtype) for p in start()], states_of(formula, case)
    size = sum(p.size for p in params)
    states, cache = [np.zeros(size, dtype) if s in present else None for s in formula.states], {}
    more = () if op_name == "_fused_rmsprop" else (None, None)
    for step in range(1, STEPS + 1):
        grads = [grad.astype(dtype) for grad in gradients(step)]
        options = [
            step_of(x) if o == "step" else x for o, x in zip(formula.options, options_of(name, case, step), strict=True)
        ]
        run(params, grads, *states, cache, *options, *more)
    return [p.astype("f8") for p in params]


@pytest.mark.parametrize("on_device", BOTH)
@pytest.mark.parametrize(("name", "number"), ALL)
def test_composites(name, number, on_device):
    case, op_name = CASES[name][2][number], CASES[name][0]
    table = table_of(torch.device("cpu"))
    counted = (lambda step: np.array([step], "f4")) if on_device else (lambda step: step)
    found = fused(name, case, lambda *args: REGISTRY[op_name].composite(table, *args), "f8", counted)
    check(found, expected(name, case), torch.float32 if on_device else torch.float64)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("name", "number"), [(name, i) for name, i in ALL if name in ("Adam", "AdamW", "SGD")])
def test_native_kernels(name, number, dtype):
    case, op_name = CASES[name][2][number], CASES[name][0]
    kernel, served = native_optim.kernels[op_name], []
    found = fused(name, case, lambda *args: served.append(kernel(Device(), *args)), dtype)
    assert served == [True] * STEPS
    check(found, expected(name, case, dtype), torch.float32 if dtype == "f4" else torch.float64)


@pytest.mark.parametrize("formula", [ADAM, SGD, RMSPROP, ADAGRAD], ids=lambda f: f.name)
def test_the_language(formula):
    """Statements are assignments of one name and conditions on one name; the parameter comes last."""

    def walk(statements):
        for s in statements:
            if isinstance(s, ast.If):
                assert isinstance(s.test, ast.Name)
                yield from walk([*s.body, *s.orelse])
            else:
                assert isinstance(s, ast.Assign) and len(s.targets) == 1
                yield s

    *_, last = walk(formula.update)
    assert last.targets[0].id == "param" and isinstance(last.value.op, ast.Sub)
    assert "param" not in find_names(last.value.right)
    kept = last.value.left
    assert isinstance(kept, ast.Name) or isinstance(kept.op, ast.Mult) and isinstance(kept.right, ast.Name)
    assert set(formula.numbers) == {
        *formula.numbers[: formula.fixed_count],
        *(formula.numbers_of_step & {*formula.numbers}),
    }
    assert len(formula.numbers) <= 8
