"""Parameters in half precision, where an optimizer's `eps` may be rounded to 0."""

import pytest

import torchlite as torch
from torchlite import optim

pytestmark = pytest.mark.usefixtures("on_device")
CASES = [
    ("Adam", {}),
    ("Adam", {"foreach": True}),
    ("Adam", {"foreach": False}),
    ("Adam", {"fused": True}),
    ("Adam", {"amsgrad": True, "weight_decay": 0.1}),
    ("Adam", {"capturable": True}),
    ("AdamW", {}),
    ("AdamW", {"maximize": True}),
    ("AdamW", {"fused": True}),
    ("NAdam", {}),
    ("NAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("RAdam", {"eps": 1e-9}),
    ("Adamax", {}),
    ("Adagrad", {}),
    ("Adagrad", {"fused": True}),
    ("RMSprop", {}),
    ("RMSprop", {"centered": True, "momentum": 0.9}),
    ("Adadelta", {"eps": 1e-9}),
]


def stepped(name, options, gradient, dtype, steps=8):
    """A parameter of ones after some steps with one gradient."""
    param = torch.ones(5, dtype=dtype, requires_grad=True)
    optimizer = getattr(optim, name)([param], **options)
    for _ in range(steps):
        param.grad = torch.full_like(param, gradient)
        optimizer.step()
    return param.detach().cpu()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_gradient_of_zero_changes_nothing(name, options, dtype):
    options = {**options, "weight_decay": 0.0}
    assert stepped(name, options, 0.0, dtype).tolist() == [1.0] * 5


@pytest.mark.parametrize("gradient", [1e-7, 1e-5, 1e-4, 2e-3, 5e-3])
@pytest.mark.parametrize(("name", "options"), CASES)
def test_a_gradient_whose_square_is_rounded_to_zero(name, options, gradient):
    assert torch.isfinite(stepped(name, options, gradient, torch.float16, 40)).all()


@pytest.mark.parametrize("gradient", [0.5, 0.05, 30.0])
@pytest.mark.parametrize(("name", "options"), [case for case in CASES if case[0] != "Adadelta"])  # starts from eps
def test_the_replacement_of_eps_is_less_than_a_rounding_error(name, options, gradient):
    found = stepped(name, options, gradient, torch.float16)
    assert found.tolist() == stepped(name, {**options, "eps": 0.0}, gradient, torch.float16).tolist()


def test_rows_of_a_sparse_gradient():
    for name in ("SparseAdam", "Adagrad"):
        param = torch.ones(3, 2, dtype=torch.float16, requires_grad=True)
        optimizer = getattr(optim, name)([param])
        param.grad = torch.sparse_coo_tensor(torch.tensor([[1]]), torch.zeros(1, 2, dtype=torch.float16), (3, 2))
        optimizer.step()
        assert param.tolist() == [[1, 1]] * 3
