"""Python numbers where a dtype must hold them: PyTorch's values and errors, recorded in python_scalars.json."""

import json
import pathlib

import numpy as np
import pytest

import torchlite as torch

FILE = pathlib.Path(__file__).with_name("python_scalars.json")
DTYPES = ["uint8", "int8", "int32", "int64", "bool", "float16", "float32"]
VALUES = [
    "-1",
    "-255",
    "-256",
    "256",
    "300",
    "-300",
    "128",
    "-129",
    "1e30",
    "inf",
    "nan",
    "2.9",
    "-0.5",
    "True",
    "2**40",
]
WAYS = {
    "tensor": lambda lib, value, dtype: lib.tensor(value, dtype=dtype),
    "tensor of a list": lambda lib, value, dtype: lib.tensor([value], dtype=dtype),
    "full": lambda lib, value, dtype: lib.full((1,), value, dtype=dtype),
    "fill_": lambda lib, value, dtype: lib.zeros(1, dtype=dtype).fill_(value),
    "item": lambda lib, value, dtype: written(lib.zeros(1, dtype=dtype), value),
    "masked_fill": lambda lib, value, dtype: lib.zeros(1, dtype=dtype).masked_fill(lib.tensor([True]), value),
    "index_fill": lambda lib, value, dtype: lib.zeros(1, dtype=dtype).index_fill(0, lib.tensor([0]), value),
    "scatter": lambda lib, value, dtype: lib.zeros(1, dtype=dtype).scatter(0, lib.tensor([0]), value),
    "clamp": lambda lib, value, dtype: lib.zeros(1, dtype=dtype).clamp(max=value),
    "where": lambda lib, value, dtype: lib.where(lib.tensor([True]), value, lib.ones(1, dtype=dtype)),
    "pow": lambda lib, value, dtype: lib.ones(1, dtype=dtype) ** value,
}


def written(x, value):
    x[0] = value
    return x


def answer(lib, way, value, dtype):
    """A library's result: the dtype and value, or the error's type and message."""
    try:
        result = WAYS[way](lib, eval(value, {"inf": float("inf"), "nan": float("nan")}), getattr(lib, dtype))
    except Exception as error:
        return [type(error).__name__, str(error).splitlines()[0]]
    return [str(result.dtype).removeprefix("torch."), repr(result.reshape(-1).tolist()[0])]


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("way", WAYS)
def test_numbers(way, dtype, device):
    recorded = json.loads(FILE.read_text())[f"{way}/{dtype}"]
    found = {value: answer(torch, way, value, dtype) for value in VALUES}
    if device != "cpu":  # a device's kernels take numbers as they are
        beyond = {"float16": ("1e30", "2**40"), "bool": ("True",)}.get(dtype, ())
        recorded, found = ({v: a for v, a in each.items() if v not in beyond} for each in (recorded, found))
    assert found == recorded


def test_integers_of_more_than_64_bits():
    assert torch.tensor(2**70, dtype=torch.float64).item() == 2.0**70
    for call in (
        lambda: torch.tensor([1], dtype=torch.uint8) < 2**70,
        lambda: torch.tensor([1], dtype=torch.int8).clamp(max=2**70),
        lambda: torch.ones(1, dtype=torch.int32) + 2**70,
        lambda: torch.zeros(1, dtype=torch.half).fill_(2**70),
    ):
        with pytest.raises(OverflowError, match="int too big to convert"):
            call()
    with pytest.raises(ValueError, match="Overflow when unpacking long long"):
        torch.tensor([2**70])


BEYOND = {
    "sum": lambda x, n: x + n,
    "number first": lambda x, n: n - x,
    "product": lambda x, n: x * n,
    "quotient": lambda x, n: x / n,
    "quotient rounded": lambda x, n: torch.div(x, n, rounding_mode="floor"),
    "remainder": lambda x, n: x % n,
    "power": lambda x, n: x**n,
    "base of a power": lambda x, n: n**x,
    "equal": lambda x, n: x == n,
    "less": lambda x, n: x < n,
    "in place": lambda x, n: x.clone().add_(n),
    "compared in place": lambda x, n: x.clone().eq_(n),
    "alpha": lambda x, n: torch.add(x, x, alpha=n),
    "where": lambda x, n: torch.where(x == x, x, n),
    "clamp": lambda x, n: x.clamp(max=n),
    "fill_": lambda x, n: x.clone().fill_(n),
    "masked_fill": lambda x, n: x.masked_fill(x == x, n),
    "lerp": lambda x, n: x.lerp(x, n),
    "addcmul": lambda x, n: torch.addcmul(x, x, x, value=n),
    "arange": lambda x, n: torch.arange(n, device=x.device),
    "full": lambda x, n: torch.full_like(x, n),
}


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "complex64", "float16"])
@pytest.mark.parametrize("way", BEYOND)
def test_no_op_takes_integers_of_more_than_64_bits(way, dtype):
    x = torch.ones(2, dtype=getattr(torch, dtype))
    with pytest.raises(OverflowError, match="int too big to convert"):
        BEYOND[way](x, 2**64)
    with pytest.raises(OverflowError, match="can't convert negative int to unsigned"):
        BEYOND[way](x, -(2**63) - 1)


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("dtype", ["float32", "int64", "uint8", "complex64"])
def test_items_take_integers_of_64_bits(dtype):
    x = torch.zeros(2, dtype=getattr(torch, dtype))
    for index in (0, slice(None), torch.tensor([True, False]), torch.tensor([0])):
        with pytest.raises(ValueError, match="Overflow when unpacking long long"):
            x[index] = 2**63


def test_large_integers_beside_floats_are_floats():
    assert torch.equal(torch.tensor([1.0, 2**70]), torch.tensor([1.0, 2.0**70]))
    assert torch.tensor(2**70, dtype=torch.bfloat16).item() == 2.0**70
    assert torch.tensor(2**64 - 1, dtype=torch.uint64).item() == 2**64 - 1
    assert (torch.ones(1) + (2**64 - 1)).item() == 2.0**64
    assert torch.ones(1, dtype=torch.int64).add(2**63).item() == 1 - 2**63


@pytest.mark.usefixtures("on_device")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_no_imaginary_numbers_beside_real_dtypes(dtype):
    x, name = torch.ones(2, dtype=getattr(torch, dtype)), {"float32": "float", "float64": "double"}[dtype]
    for call in (
        lambda: x.lerp(x, 1j),
        lambda: torch.addcmul(x, x, x, value=1j),
        lambda: torch.addcdiv(x, x, x, value=1j),
        lambda: x.masked_fill(x > 0, 1j),
        lambda: x.clone().fill_(1j),
    ):
        with pytest.raises(RuntimeError, match=f"value cannot be converted to type {name} without overflow"):
            call()
    assert torch.addcmul(x, x, x, value=True).tolist() == [2, 2]


def test_alpha_is_a_number_of_the_dtype():
    x = torch.ones(1, dtype=torch.uint8)
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        torch.add(x, x, alpha=300)
    with pytest.raises(RuntimeError, match="argument alpha must not be a floating point number"):
        torch.sub(x, x, alpha=1j)


def test_lists_with_tensors_promote_them():
    def of(value, dtype):
        return torch.tensor(value, dtype=dtype)

    half = of(3.0, torch.half)
    assert torch.tensor([of(3, torch.int16)]).dtype is torch.int16
    assert torch.tensor([of(3j, torch.complex128)]).dtype is torch.complex128
    assert torch.tensor([of(3, torch.uint8), of(3, torch.int8)]).dtype is torch.int16
    assert torch.tensor([half, 2]).dtype is torch.half
    assert torch.tensor([[half], [2.5]]).dtype is torch.float32
    assert torch.tensor([half, of(1.0, torch.bfloat16)]).dtype is torch.float32
    assert torch.tensor([of(1, torch.int8), True]).dtype is torch.int8


NO_DTYPES = {
    "str": "float64",
    "NumPy's": np.dtype("float64"),
    "a class": np.float64,
    "int": 5,
    "a device": torch.device("cpu"),
}
TAKING = {
    "tensor": lambda d: torch.tensor([1], dtype=d),
    "as_tensor": lambda d: torch.as_tensor(np.ones(2), dtype=d),
    "asarray": lambda d: torch.asarray(torch.ones(2), dtype=d),
    "zeros": lambda d: torch.zeros(2, dtype=d),
    "full_like": lambda d: torch.full_like(torch.ones(2), 1, dtype=d),
    "rand": lambda d: torch.rand(2, dtype=d),
    "randperm": lambda d: torch.randperm(2, dtype=d),
    "frombuffer": lambda d: torch.frombuffer(bytearray(8), dtype=d),
    "cumsum": lambda d: torch.ones(2).cumsum(0, dtype=d),
    "sum": lambda d: torch.ones(2).sum(dtype=d),
    "finfo": lambda d: torch.finfo(d),
    "can_cast": lambda d: torch.can_cast(d, torch.float32),
    "promote_types": lambda d: torch.promote_types(torch.float32, d),
    "set_default_dtype": lambda d: torch.set_default_dtype(d),
}


@pytest.mark.parametrize("value", NO_DTYPES)
@pytest.mark.parametrize("name", TAKING)
def test_wrong_dtype_arguments_raise(name, value):
    with pytest.raises(TypeError, match="must be torch.dtype, not|invalid combination|only floating-point types"):
        TAKING[name](NO_DTYPES[value])


def test_pythons_types_are_dtypes():
    assert torch.can_cast(int, float) and torch.promote_types(int, float) is torch.float64
    assert torch.frombuffer(bytearray(8), dtype=int).dtype is torch.int64
    assert torch.rand(2, dtype=float).dtype is torch.float64
    assert torch.nn.Linear(1, 1).to(float).weight.dtype is torch.float64


@pytest.mark.usefixtures("on_device")
def test_dtypes_that_kernels_refuse():
    z = torch.ones(3, dtype=torch.complex64)
    for call in (z.mode, z.median, lambda: z.kthvalue(1), lambda: z.cummax(0), lambda: z.median(0)):
        with pytest.raises(NotImplementedError, match="not implemented for 'ComplexFloat'"):
            call()
    for call in (torch.cumsum, torch.cumprod):
        with pytest.raises(NotImplementedError, match="_out_cpu\" not implemented for 'Bool'"):
            call(torch.ones(3), 0, dtype=torch.bool)
        assert call(torch.ones(3, dtype=torch.bool), 0).dtype is torch.int64


@pytest.mark.usefixtures("on_device")
def test_writes_in_place_ask_the_dtype_first():
    x, n, b = torch.ones(2), torch.ones(2, dtype=torch.int64), torch.tensor([True, False])
    for call, names in (
        (lambda: x.__ior__(1j), ("ComplexFloat", "Float")),
        (lambda: x.__ilshift__(1j), ("ComplexFloat", "Float")),
        (lambda: x.remainder_(1j), ("ComplexFloat", "Float")),
        (lambda: x.fmod_(1j), ("ComplexFloat", "Float")),
        (lambda: n.__iand__(1.5), ("Float", "Long")),
        (lambda: n.__iand__(x), ("Float", "Long")),
        (lambda: b.remainder_(0), ("Long", "Bool")),
    ):
        with pytest.raises(
            RuntimeError, match="result type {} can't be cast to the desired output type {}".format(*names)
        ):
            call()
