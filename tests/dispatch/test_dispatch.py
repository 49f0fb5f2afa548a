"""Records, tables, generated functions, interceptors, subclasses, promotion, the meta device."""

from __future__ import annotations

import inspect
import itertools
import linecache
import subprocess
import sys
import traceback

import numpy as np
import pytest

import torchlite as torch
from torchlite._dispatch import REGISTRY, Interceptor, function_for, register_backend
from torchlite._dispatch.op_record import parse_schema
from torchlite._dispatch.shapes import broadcast_shapes, infer_size, reduced_shape, wrap_dim, wrap_dims


def test_schemas_parse_to_signatures():
    params = parse_schema(
        'f(Tensor input, Tensor|Number other, dim=None, mode="a,b", size=(1, 2), *, Tensor? weight=None, alpha=1)'
    )
    assert [(p.name, p.kind, p.kwonly) for p in params] == [
        ("input", "tensor", False),
        ("other", "number", False),
        ("dim", "plain", False),
        ("mode", "plain", False),
        ("size", "plain", False),
        ("weight", "optional", True),
        ("alpha", "plain", True),
    ]
    assert params[3].default == "a,b" and params[4].default == (1, 2)


def test_every_record_parses_and_its_function_has_a_docstring_and_signature():
    for record in REGISTRY.values():
        function = function_for(record)
        assert record.params is not None and function.__doc__ and inspect.signature(function) is not None
        assert record.file.endswith(".py") and record.line > 0


def test_help_shows_pytorchs_signature_and_the_records_place():
    assert "dim" in inspect.signature(torch.softmax).parameters
    assert "torchlite/_ops/" in torch.softmax.__doc__
    assert torch.softmax.__name__ == "softmax"


def test_a_whole_traceback_names_the_op_and_shows_source(monkeypatch):
    monkeypatch.setenv("TORCHLITE_TRACEBACK_FILTERING", "0")
    try:
        torch.ones(2) + torch.ones(3)
    except RuntimeError:
        text = traceback.format_exc()
    assert "<torchlite op add, declared at pointwise.py:" in text
    assert any(name.startswith("<torchlite op add") for name in linecache.cache)


def test_a_missing_op_on_a_device_names_the_remedy():
    class Nothing:
        name, array = "nothing", np.ndarray
        why_not = staticmethod(lambda: "")
        device_count = staticmethod(lambda: 1)
        kernels = staticmethod(lambda index: {"_full": lambda size, value, dtype: np.full(size, value, dtype.np)})
        as_array = staticmethod(np.asarray)
        from_numpy = staticmethod(lambda array, index: array)
        to_numpy = staticmethod(lambda raw: raw)
        dtype_of = staticmethod(lambda raw: torch.from_numpy(raw).dtype)
        offset_between = staticmethod(lambda raw, base: 0)
        copy_into = staticmethod(np.copyto)
        is_sole_owner = staticmethod(lambda raw: True)
        random_engine = staticmethod(lambda index: None)

    register_backend("nothing", Nothing())
    x = torch.ones(2, device="nothing")
    assert str(x.device) == "nothing:0"
    with pytest.raises(NotImplementedError, match=r"op 'exp' has no kernel on device 'nothing:0'.*\.cpu\(\)"):
        x.exp()
    with pytest.raises(
        RuntimeError, match="Expected all tensors to be on the same device, but found at least two devices"
    ):
        x + torch.ones(2)


def test_an_absent_backend_names_its_extra():
    if not torch.cuda.is_available():
        with pytest.raises((RuntimeError, AssertionError), match=r"torchlite-nd\[cuda12\]"):
            torch.ones(2, device="cuda")
        assert torch.cuda.device_count() == 0
    with pytest.raises(RuntimeError, match="at start of device string: nonsense"):
        torch.device("nonsense")


class Names(Interceptor):
    def __init__(self):
        self.seen = []

    def intercept(self, op, function, args, kwargs):
        self.seen.append(op.name)
        return function(*args, **kwargs)


def test_interceptors_see_ops_and_nest(device):
    x = torch.ones(2, device=device)
    with Names() as outer:
        x.exp()
        with Names() as inner:
            x.sin()
            x.add_(1)
    x.cos()
    assert inner.seen[0] == "sin" and "add_alpha" in inner.seen
    assert outer.seen[:2] == ["exp", "sin"] and "cos" not in outer.seen


def test_interceptors_are_per_thread(device):
    import threading

    with Names() as names:
        thread = threading.Thread(target=lambda: torch.ones(2, device=device).exp())
        thread.start()
        thread.join()
    assert names.seen == []


class Tagged(torch.Tensor):
    calls: list = []

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        cls.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


def test_subclasses_pass_through_ops(device):
    Tagged.calls.clear()
    t = torch.ones(2, device=device).as_subclass(Tagged)
    r = torch.exp(t)
    assert type(r) is Tagged and "exp" in Tagged.calls
    assert type(t + 1) is Tagged and type(1 + t) is Tagged and type(t.sum()) is Tagged

    class Plain(torch.Tensor):
        pass

    assert type(torch.ones(2, device=device).as_subclass(Plain) * 2) is Plain


def test_subclasses_get_the_keywords(device):
    t = torch.ones(2, device=device).as_subclass(Tagged)
    assert torch.add(t, t, alpha=3).tolist() == [4, 4] and torch.sum(t, dtype=torch.int64).dtype is torch.int64


DTYPES = [
    torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16,
    torch.float32, torch.float64, torch.complex64, torch.complex128,
]  # fmt: skip


def test_promotion_is_commutative_associative_enough_and_idempotent():
    for a, b in itertools.product(DTYPES, DTYPES):
        c = torch.promote_types(a, b)
        assert c is torch.promote_types(b, a) and torch.promote_types(a, a) is a
        assert torch.promote_types(c, a) is c and torch.promote_types(c, b) is c


# Result dtypes of PyTorch 2.13 for x + y: (dtype of x, of y, dimensions of x, of y) -> dtype.
PROMOTION = [
    ("int32", "float32", 1, 1, "float32"), ("int64", "float16", 1, 1, "float16"),
    ("float32", "float64", 1, 0, "float32"), ("int32", "int64", 1, 0, "int32"), ("int32", "float64", 1, 0, "float64"),
    ("uint8", "int8", 1, 1, "int16"), ("bool", "uint8", 1, 1, "uint8"), ("float16", "bfloat16", 1, 1, "float32"),
    ("float64", "complex64", 1, 1, "complex128"),
    ("float64", "complex64", 1, 0, "complex128"),
    ("float32", "complex128", 1, 0, "complex64"),
    ("bool", "int64", 1, 0, "int64"), ("float32", "float64", 0, 0, "float64"),
]  # fmt: skip


@pytest.mark.parametrize(("a", "b", "na", "nb", "want"), PROMOTION)
def test_promotion_by_dimension_category(device, a, b, na, nb, want):
    x = torch.ones((2,) * na, dtype=getattr(torch, a), device=device)
    y = torch.ones((2,) * nb, dtype=getattr(torch, b), device=device)
    assert (x + y).dtype is getattr(torch, want) and (y + x).dtype is getattr(torch, want)
    assert torch.result_type(x, y) is getattr(torch, want)


@pytest.mark.parametrize(
    ("dtype", "number", "want"),
    [
        ("int32", 2, "int32"),
        ("int32", 2.0, "float32"),
        ("float16", 2.0, "float16"),
        ("bool", 2, "int64"),
        ("float32", 2j, "complex64"),
        ("int8", True, "int8"),
        ("float64", 2, "float64"),
    ],
)
def test_promotion_with_numbers(device, dtype, number, want):
    x = torch.ones(2, dtype=getattr(torch, dtype), device=device)
    assert (x * number).dtype is getattr(torch, want) and (number * x).dtype is getattr(torch, want)


def test_integers_become_the_default_float(device):
    x = torch.tensor([1, 4], device=device)
    assert x.sqrt().dtype is torch.float32 and (x / 2).dtype is torch.float32 and x.sum().dtype is torch.int64
    torch.set_default_dtype(torch.float64)
    try:
        assert x.sqrt().dtype is torch.float64 and torch.tensor(1.0).dtype is torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_zero_dim_results_are_tensors(device):
    x = torch.ones(3, device=device)
    for r in (x.sum(), x[0], x.mean() * 2, x.dot(x), x.max(), torch.tensor(2.0, device=device) + 1, x.sum().exp()):
        assert isinstance(r, torch.Tensor) and r.shape == () and r.dtype is torch.float32


def test_shape_rules():
    assert (
        broadcast_shapes((3, 1), (4,)) == (3, 4)
        and reduced_shape((2, 3, 4), (0, -1), True) == (1, 3, 1)
        and wrap_dims(None, 2) == (0, 1)
    )
    assert infer_size((2, -1), 6) == (2, 3) and wrap_dim(-1, 3) == 2
    for call, error, words in (
        (
            lambda: wrap_dim(3, 2),
            IndexError,
            r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 3\)",
        ),
        (lambda: wrap_dims((0, -2), 2), RuntimeError, "dim 0 appears multiple times in the list of dims"),
        (lambda: infer_size((4, -1), 6), RuntimeError, r"shape '\[4, -1\]' is invalid for input of size 6"),
        (
            lambda: broadcast_shapes((2, 3), (3, 2)),
            RuntimeError,
            r"The size of tensor a \(3\) must match the size of tensor b \(2\) at non-singleton dimension 1",
        ),
    ):
        with pytest.raises(error, match=words):
            call()


def test_meta_runs_a_network_without_data():
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).to("meta")
    out = torch.nn.functional.log_softmax(model(torch.empty(1000, 8, device="meta")), 1)
    assert out.shape == (1000, 4) and out.is_meta
    big = torch.empty(10**7, 10**6, device="meta")
    assert (big.t() + 1).sum(0).shape == (10**7,)
    with pytest.raises(NotImplementedError, match="Cannot copy out of meta tensor; no data!"):
        big.cpu()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda t: torch.ones(2) + torch.ones(3),
            RuntimeError,
            r"The size of tensor a \(2\) must match the size of tensor b \(3\) at non-singleton "
            r"dimension 0",
        ),
        (
            lambda t: torch.ones(2, 3) @ torch.ones(2, 3),
            RuntimeError,
            r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 2x3\)",
        ),
        (
            lambda t: torch.ones(2).sum(3),
            IndexError,
            r"Dimension out of range \(expected to be in range of \[-1, 0\], but got 3\)",
        ),
        (lambda t: torch.exp("a"), TypeError, r"exp\(\): argument 'input' \(position 1\) must be Tensor, not str"),
        (lambda t: torch.ones(2).view(3), RuntimeError, r"shape '\[3\]' is invalid for input of size 2"),
        (
            lambda t: torch.ones(2, 3).t().view(6),
            RuntimeError,
            "view size is not compatible with input tensor's size and stride",
        ),
        (
            lambda t: torch.cat([torch.ones(2, 3), torch.ones(3, 2)]),
            RuntimeError,
            "Sizes of tensors must match except in dimension 0",
        ),
        (lambda t: torch.ones(2).item(), RuntimeError, "a Tensor with 2 elements cannot be converted to Scalar"),
        (lambda t: bool(torch.ones(2)), RuntimeError, "Boolean value of Tensor with more than one value is ambiguous"),
        (
            lambda t: torch.nn.functional.linear(torch.ones(2, 3), torch.ones(4, 5)),
            RuntimeError,
            r"mat1 and mat2 shapes cannot be multiplied \(2x3 and 5x4\)",
        ),
        (lambda t: torch.tensor([[1, 2], [3]]), ValueError, r"expected sequence of length 2 at dim 1 \(got 1\)"),
        (lambda t: torch.ones(2).nope(), AttributeError, "'Tensor' object has no attribute 'nope'"),
        (lambda t: torch.softmax(torch.ones(2), 0, bad=1), TypeError, "unexpected keyword argument 'bad'"),
        (lambda t: len(torch.tensor(1.0)), TypeError, r"len\(\) of a 0-d tensor"),
    ],
)
def test_errors_match_pytorchs_messages(call, error, words):
    with pytest.raises(error, match=words):
        call(torch)


def test_import_is_light():
    code = (
        "import sys; before = set(sys.modules); import torchlite; print(len([m for m in sys.modules if m not in "
        "before and m.startswith('torchlite')]))"
    )
    assert int(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) <= 150
