"""Numbers of one byte without arithmetic: float8_e8m0fnu, float4_e2m1fn_x2 and integers of fewer than eight bits. Casts
among the float8 dtypes. Answers are recorded from PyTorch 2.13.
"""

from __future__ import annotations

import copy
import hashlib
import io
import pickle

import numpy as np
import pytest

import torchlite as torch
from torchlite.distributed.checkpoint import _safetensors

E8, F4, U4 = torch.float8_e8m0fnu, torch.float4_e2m1fn_x2, torch.uint4
NARROW = [E8, F4, *(getattr(torch, f"{kind}{bits}") for kind in ("uint", "int") for bits in range(1, 8))]
FLOAT8 = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")


def of_bytes(values, d):
    return torch.tensor(values, dtype=torch.uint8).view(d)


def bytes_of(x):
    return x.contiguous().view(torch.uint8).reshape(-1).tolist()


def digest(x):
    """A checksum of the bytes, in which all NaNs are one."""
    if x.dtype.is_floating_point:
        nan = x.float().isnan()
        width = x.element_size()
        flat = x.contiguous().view(torch.uint8).reshape(-1, width)
        return hashlib.sha256(bytes(flat.masked_fill(nan.reshape(-1, 1), 255).reshape(-1).tolist())).hexdigest()[:16]
    return hashlib.sha256(bytes(bytes_of(x))).hexdigest()[:16]


def patterns(name):
    """Numbers of a dtype: all of them, or those around the ties of powers of two."""
    d = getattr(torch, name)
    if name == "float32":
        mantissas = (0, 1, 0x3FFFFF, 0x400000, 0x400001, 0x600000, 0x7FFFFF)
        bits = [exponent << 23 | mantissa for exponent in range(256) for mantissa in mantissas]
        return torch.tensor(bits).to(torch.int32).view(d)
    if name in ("float16", "bfloat16"):
        return torch.arange(-32768, 32768).to(torch.int16).view(d)
    if name == "float64":
        return patterns("float32").double() * 1.0000001
    if name in FLOAT8:
        return torch.arange(256).to(torch.uint8).view(d)
    if name == "int64":
        return torch.tensor([0, 1, 2, 3, 5, 6, 7, 12, -1, -3, 2**31, 2**62, -(2**63), 2**63 - 1, 1000, 255])
    return torch.arange(-100, 100).to(d)


# The first bytes, and the checksum of their values.
TO = {
    "float32": (256, "4fc3b2f6e93ad169"),
    "float64": (256, "baee6ee2d516461f"),
    "float16": (256, "6c1f0bc3e927349b"),
    "bfloat16": (256, "77150f1ae156e537"),
    "float8_e4m3fn": (256, "520a9b31f93dee92"),
    "float8_e5m2": (256, "41f15ab7de474a89"),
    "float8_e4m3fnuz": (256, "748b7c2dc06eb6d6"),
    "float8_e5m2fnuz": (256, "2d974a5cba616604"),
    "bool": (256, "2661920f2409dd6c"),
    "uint8": (135, "35f789c1e980c8ba"),
    "int8": (134, "a541eee636a4b5e1"),
    "int16": (142, "19c59dcee61e0640"),
    "int32": (158, "b4f2f80106f6c8b7"),
    "int64": (190, "232bfeafcdc3a237"),
}
# The checksum of the bytes.
FROM = {
    "float32": "578af945efab00a9",
    "float64": "f82d7922ecc4039f",
    "float16": "294238bae3ebdacf",
    "bfloat16": "c7ce8810bf43d855",
    "float8_e4m3fn": "a2313d548c197463",
    "float8_e5m2": "b571c327be47c651",
    "float8_e4m3fnuz": "03062eaf245abbba",
    "float8_e5m2fnuz": "00d0dcb70a4ec1b8",
    "int64": "5e4d963a31db88cf",
    "int32": "e3e45153d6f91171",
}
AMONG = {
    ("float8_e4m3fn", "float8_e5m2"): "4a3609e4d5677179",
    ("float8_e4m3fn", "float8_e4m3fnuz"): "73accd98c766f9ee",
    ("float8_e4m3fn", "float8_e5m2fnuz"): "a1415b9291a7291e",
    ("float8_e5m2", "float8_e4m3fn"): "303d87e679e462e3",
    ("float8_e5m2", "float8_e4m3fnuz"): "1ec16a8ea7b1ea81",
    ("float8_e5m2", "float8_e5m2fnuz"): "1e8098857d18a771",
    ("float8_e4m3fnuz", "float8_e4m3fn"): "089003354dac69fc",
    ("float8_e4m3fnuz", "float8_e5m2"): "a8a67d0baee0e8e5",
    ("float8_e4m3fnuz", "float8_e5m2fnuz"): "95fbaf8bc3e01fcf",
    ("float8_e5m2fnuz", "float8_e4m3fn"): "ae97dc9a5aa3099e",
    ("float8_e5m2fnuz", "float8_e5m2"): "cf10b1ac5ae0a3d7",
    ("float8_e5m2fnuz", "float8_e4m3fnuz"): "06603ada94eb95dd",
}


@pytest.mark.parametrize("name", TO)
@pytest.mark.filterwarnings("ignore")
def test_all_powers_of_two_in_other_dtypes(name):
    count, want = TO[name]
    assert digest(of_bytes(list(range(count)), E8).to(getattr(torch, name))) == want


@pytest.mark.parametrize("name", FROM)
@pytest.mark.filterwarnings("ignore")
def test_other_dtypes_as_powers_of_two(name):
    assert hashlib.sha256(bytes(bytes_of(patterns(name).to(E8)))).hexdigest()[:16] == FROM[name]


@pytest.mark.parametrize(("source", "target"), AMONG)
def test_casts_among_float8_dtypes(source, target):
    assert digest(patterns(source).to(getattr(torch, target))) == AMONG[source, target]


def test_numbers_beyond_float8_e4m3fn_become_its_greatest_one():
    x = torch.tensor([448.0, 464.0, 465.0, 1e9, float("inf"), -500.0, float("nan")])
    assert bytes_of(x.to(torch.float8_e4m3fn)) == [126, 126, 126, 126, 126, 254, 127]
    assert bytes_of(torch.empty(7, dtype=torch.float8_e4m3fn).copy_(x)) == [126, 126, 126, 126, 126, 254, 127]


def test_values_of_powers_of_two():
    x = of_bytes([0, 1, 127, 128, 254, 255], E8)
    assert x.tolist()[:5] == [2.0**-127, 2.0**-126, 1.0, 2.0, 2.0**127] and x.isnan().tolist() == [False] * 5 + [True]
    assert x[3].item() == 2.0 and float(x[2]) == 1.0
    given = torch.tensor([0.0, -0.0, 1.0, -1.0, 1.5, 1.25, 3.0, 0.75, 1e-45, 3e38, float("inf"), float("nan")])
    want = [0, 0, 127, 127, 128, 127, 129, 127, 0, 255, 255, 255]
    assert bytes_of(given.to(E8)) == want and bytes_of(torch.tensor(given.tolist(), dtype=E8)) == want
    assert (x[:5] == x[:5]).tolist() == [True] * 5 and torch.equal(x[:5], x[:5].clone()) and not torch.equal(x, x)


def test_text_of_powers_of_two_and_of_bytes():
    assert (
        str(of_bytes([1, 127, 128], E8)) == "tensor([1.1755e-38, 1.0000e+00, 2.0000e+00], dtype=torch.float8_e8m0fnu)"
    )
    assert str(torch.zeros(3, dtype=E8)) == "tensor([0., 0., 0.], dtype=torch.float8_e8m0fnu)"
    assert str(of_bytes([0, 0, 127], E8)) == "tensor([0., 0., 1.], dtype=torch.float8_e8m0fnu)"
    assert str(of_bytes([0, 16, 255], F4)) == "tensor([  0.,  16., 255.], dtype=torch.float4_e2m1fn_x2)"


def test_filled_tensors():
    assert bytes_of(torch.ones(2, dtype=E8)) == [127, 127] and bytes_of(torch.full((2,), 4.0, dtype=E8)) == [129, 129]
    x = of_bytes([1, 127, 128], E8)
    assert bytes_of(torch.full_like(x, 2.0)) == [128] * 3 and bytes_of(torch.ones_like(x)) == [127] * 3
    assert bytes_of(x.new_full((2,), 4.0)) == [129, 129] and bytes_of(x.new_zeros(2)) == [0, 0]
    assert bytes_of(x.clone().fill_(-1)) == [127] * 3 and bytes_of(x.clone().zero_()) == [0, 0, 0]
    assert bytes_of(torch.eye(2, dtype=E8)) == [127, 0, 0, 127]
    x[0] = 2.0
    assert bytes_of(x) == [128, 127, 128]
    mask = torch.tensor([True, False, True])
    assert bytes_of(torch.where(mask, x, 1.0)) == [128, 127, 128] and bytes_of(torch.where(mask, 1.0, x)) == [127] * 3
    for value in (0.0, -3.0, 1e39, float("inf")):
        with pytest.raises(
            RuntimeError, match="value cannot be converted to type c10::Float8_e8m0fnu without overflow"
        ):
            torch.full((2,), value, dtype=E8)


@pytest.mark.parametrize("d", NARROW, ids=str)
def test_bytes_move_as_they_are(d):
    x = of_bytes([1, 127, 128, 255], d)
    assert x.dtype is d and x.element_size() == 1 and x.shape == (4,) and torch.empty(3, dtype=d).shape == (3,)
    moved = [x.clone(), x.view(2, 2).t().contiguous().t(), torch.cat([x[:1], x[1:]]), x.to(d), copy.deepcopy(x)]
    moved += [torch.empty(4, dtype=d).copy_(x), x.view(torch.int16).view(d), pickle.loads(pickle.dumps(x))]
    for y in moved:
        assert y.dtype is d and bytes_of(y) == [1, 127, 128, 255]
    assert bytes_of(x[[2, 0]]) == [128, 1] and bytes_of(x.roll(1)) == [255, 1, 127, 128]
    assert bytes_of(torch.zeros(2, dtype=d)) == [0, 0] and bytes_of(torch.stack([x, x], 1)[0]) == [1, 1]
    x[0] = x[3].clone()
    assert bytes_of(x) == [255, 127, 128, 255]


@pytest.mark.parametrize("d", NARROW, ids=str)
@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.neg(), lambda x: x.exp(), lambda x: x + 1, lambda x: x.sum(), lambda x: x @ x, lambda x: x.sort(),
        lambda x: x > 1, lambda x: x.cumsum(0), lambda x: x.masked_fill(torch.tensor([True, False]), 2.0),
        lambda x: x.unique(), lambda x: x.max(), lambda x: torch.arange(3, dtype=x.dtype),
        lambda x: torch.rand(2, dtype=x.dtype), lambda x: x.normal_(), lambda x: x.clamp(1, 2),
        lambda x: x.index_fill(0, torch.tensor([0]), 1.0),
    ],
)  # fmt: skip
def test_nothing_computes_with_them(d, call):
    x = of_bytes([1, 127], d)
    with pytest.raises(NotImplementedError, match=f"not implemented for '{d.scalar_name}'"):
        call(x)
    assert bytes_of(x) == [1, 127]


@pytest.mark.parametrize("d", NARROW[1:], ids=str)
def test_packed_numbers_have_no_values(d):
    x = of_bytes([1, 127], d)
    for call in (lambda: x.float(), lambda: torch.ones(2).to(d), lambda: x.to(torch.int32), lambda: x[0].item(),
                 lambda: x.clone().copy_(torch.ones(2)), lambda: torch.ones(2, dtype=d),
                 lambda: torch.full((2,), 1, dtype=d)):  # fmt: skip
        with pytest.raises(NotImplementedError, match=f"not implemented for '{d.scalar_name}'"):
            call()
    with pytest.raises(RuntimeError, match="load_scalar: invalid type"):
        x.tolist()
    with pytest.raises(RuntimeError, match="store_scalar: invalid type"):
        torch.tensor([1.0], dtype=d)


def test_facts_of_the_dtypes():
    info = torch.finfo(E8)
    assert (info.bits, info.eps, info.max, info.min, info.resolution) == (8, 1.0, 2.0**127, 2.0**-127, 1.0)
    assert (E8.is_floating_point, E8.is_signed, F4.is_signed, U4.is_floating_point, U4.itemsize) == (
        True, False, True, False, 1
    )  # fmt: skip
    assert torch.finfo(torch.float8_e4m3fn).resolution == 1.0
    with pytest.raises(TypeError):
        torch.finfo(F4)
    with pytest.raises(TypeError, match="requires an integer input type"):
        torch.iinfo(U4)
    with pytest.raises(TypeError, match="couldn't find storage object Float8_e8m0fnuStorage"):
        torch.set_default_dtype(E8)
    assert torch.promote_types(U4, torch.float32) is torch.float32
    for other in (torch.float32, torch.int8):
        with pytest.raises(
            RuntimeError, match="Promotion for Float8 Types is not supported, attempted to promote Float8"
        ):
            torch.promote_types(E8, other)
        with pytest.raises(RuntimeError, match="Promotion"):
            torch.promote_types(F4, other)


def test_files_and_arrays():
    x = {"e8": of_bytes(list(range(256)), E8), "f4": of_bytes(list(range(256)), F4)}
    stream = io.BytesIO()
    torch.save(x, stream)
    stream.seek(0)
    for name, y in torch.load(stream).items():
        assert y.dtype is x[name].dtype and bytes_of(y) == bytes_of(x[name])
    assert _safetensors._NAMES[E8] == "F8_E8M0" and _safetensors._NAMES[F4] == "F4"
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1.0, 2.0], ml_dtypes.float8_e8m0fnu)
    shared = torch.from_numpy(array)
    assert shared.dtype is E8 and bytes_of(shared) == [127, 128] and bytes_of(torch.tensor(array)) == [127, 128]
    shared.view(torch.uint8)[0] = 128
    assert float(array[0]) == 2.0
    with pytest.raises(TypeError, match="Got unsupported ScalarType Float8_e8m0fnu"):
        shared.numpy()


def test_whole_numbers_that_powers_of_two_lack_fill():
    """PyTorch refuses such floats alone."""
    x = of_bytes([1, 127], E8)
    assert bytes_of(torch.zeros_like(x)) == bytes_of(torch.full((2,), 0, dtype=E8)) == [0, 0]
    assert bytes_of(torch.full_like(x, 0)) == [0, 0]
    assert bytes_of(torch.full((2,), -1, dtype=E8)) == [127, 127] and bytes_of(torch.full_like(x, 3)) == [129, 129]


BITS = [getattr(torch, f"bits{form}") for form in ("8", "1x8", "2x4", "4x2", "16")]


@pytest.mark.parametrize("d", BITS, ids=str)
def test_bits_are_copied_and_refuse_arithmetic(d, tmp_path):
    integers = torch.int16 if d.itemsize == 2 else torch.int8
    plain = torch.arange(-6, 6, dtype=integers).reshape(3, 4)
    x = plain.view(d)
    assert x.dtype is d and x.element_size() == d.itemsize and torch.empty(3, dtype=d).shape == (3,)
    assert torch.zeros(20, dtype=torch.int32).view(d).shape == (80 // d.itemsize,)
    for found, wanted in (
        (x.t().contiguous(), plain.t()), (x.t().clone(), plain.t()), (x[1], plain[1]), (x[:, ::2], plain[:, ::2]),
        (torch.cat([x, x.t().reshape(3, 4)]), torch.cat([plain, plain.t().reshape(3, 4)])),
        (torch.stack([x, x], 1), torch.stack([plain, plain], 1)), (x.repeat(2, 1), plain.repeat(2, 1)),
        (torch.where(plain > 0, x, torch.zeros_like(x)), plain.clamp(min=0)),
    ):  # fmt: skip
        assert found.dtype is d and torch.equal(found.contiguous().view(integers), wanted)
    torch.save(x, tmp_path / "x.pt")
    assert torch.equal(torch.load(tmp_path / "x.pt").view(integers), plain)
    for call in (lambda: x + 1, lambda: x.sum(), lambda: x.to(torch.int32), lambda: plain.to(d), lambda: x == x):
        with pytest.raises(NotImplementedError, match="not implemented for 'Bits"):
            call()
    with pytest.raises(RuntimeError, match=f"Promotion from {d.scalar_name} and Char is unsupported"):
        torch.promote_types(d, torch.int8)
    with pytest.raises(RuntimeError, match="load_scalar"):
        x.tolist()
