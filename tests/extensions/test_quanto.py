"""The extension of optimum-quanto, whose functions are torchlite's own."""

import pytest

import torchlite as torch
from torchlite.utils import cpp_extension

SOURCES = ["/somewhere/unpack.cpp", "/somewhere/pybind_module.cpp"]


@pytest.mark.parametrize("bits", [2, 4])
def test_numbers_of_few_bits_are_unpacked(bits, device):
    count = 8 // bits
    numbers = torch.arange(count * 6, device=device).remainder(1 << bits).to(torch.uint8).reshape(count * 2, 3)
    packed = sum(part << (bits * place) for place, part in enumerate(numbers.chunk(count)))
    found = cpp_extension.load("quanto_cpp", SOURCES).unpack(packed, bits)
    assert found.dtype is torch.uint8 and torch.equal(found, numbers)


def test_errors_of_the_extension():
    unpack = cpp_extension.load("quanto_cpp", SOURCES, extra_cflags=["-O3"]).unpack
    with pytest.raises(RuntimeError, match="Unsupported data type: Char"):
        unpack(torch.zeros(2, dtype=torch.int8), 4)
    with pytest.raises(RuntimeError, match="Can only unpack 2-bit or 4-bit tensors"):
        unpack(torch.zeros(2, dtype=torch.uint8), 3)
    for name, sources in (("quanto_cpp", SOURCES[:1]), ("other", SOURCES), ("quanto_cpp", "unpack.cpp")):
        with pytest.raises(NotImplementedError, match="torchlite has none"):
            cpp_extension.load(name, sources)
