"""Ops of the domain com.microsoft against onnxruntime's recorded results."""

from __future__ import annotations

import io
import pathlib
import zipfile

import numpy as np
import pytest

import torchlite as torch

ARCHIVE = pathlib.Path(__file__).parent / "files" / "com_microsoft.zip"
with zipfile.ZipFile(ARCHIVE) as _archive:
    CASES = sorted(name[:-5] for name in _archive.namelist() if name.endswith(".onnx"))


def read(case):
    """The model's bytes, its inputs and its results."""
    with zipfile.ZipFile(ARCHIVE) as archive:
        arrays = np.load(io.BytesIO(archive.read(f"{case}.npz")))
        return (
            archive.read(f"{case}.onnx"),
            [arrays[name] for name in arrays if name[0] == "i"],
            [arrays[name] for name in arrays if name[0] == "o"],
        )


@pytest.mark.parametrize("case", CASES)
def test_op(case, device):
    model, given, wanted = read(case)
    module = torch.onnx.load(model).to(device)
    inputs = [torch.from_numpy(value).to(device) for value in given]
    with torch.no_grad():
        for _ in range(5):  # the later ones are optimized
            found = module(*inputs)
            found = found if isinstance(found, tuple) else (found,)
            for got, want in zip(found, wanted, strict=True):
                got = got.cpu().numpy()
                assert got.dtype == want.dtype and got.shape == want.shape
                if want.dtype.kind == "f":
                    np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-5)
                else:
                    # The average of a window may be halfway between two levels. ONNX Runtime's sum of floats
                    # in the window's order then decides.
                    near = 1 if case.startswith("QLinearAveragePool") else 0
                    assert np.abs(got.astype(int) - want.astype(int)).max() <= near


def test_every_op_has_a_case():
    from torchlite.onnx._import import com_microsoft, op_registry, register_all

    register_all()
    names = {name for domain, name in op_registry._TABLE if domain == com_microsoft._DOMAIN}
    assert names == {case.rpartition("_")[0] for case in CASES}


def test_refusals():
    from torchlite.onnx._import import com_microsoft, microsoft_packed_weights, microsoft_quantized

    x, levels, scale = torch.ones(1, 2, 4), torch.ones(4, 12, dtype=torch.int8), torch.tensor(0.1)
    with pytest.raises(ValueError, match="packed"):
        com_microsoft.multi_head_attention(x, num_heads=2)
    with pytest.raises(ValueError, match="rotary"):
        microsoft_quantized.qattention(x, levels, torch.ones(12), scale, scale, num_heads=2, do_rotary=1)
    with pytest.raises(ValueError, match="1 scales and zero points, not 10"):
        microsoft_quantized.qembed_layer_normalization(x, None, levels, levels, None, levels, levels, None, scale)
    with pytest.raises(ValueError, match="type 2"):
        microsoft_packed_weights.matmul_bnb4(x, levels, scale, K=4, N=4, block_size=4, quant_type=2)
    with pytest.raises(ValueError, match="3 bits"):
        microsoft_packed_weights.gather_block_quantized(levels.to(torch.uint8), levels, scale, bits=3)
