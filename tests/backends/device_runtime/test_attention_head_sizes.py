"""Attention with heads as wide as the kernels take them: what a group shares must fit the device."""

import numpy as np
import pytest

import torchlite as torch
import torchlite.nn.functional as F


@pytest.mark.parametrize("dtype,limit", [("float32", 1e-4), ("float64", 1e-10), ("float16", 2e-2)])
@pytest.mark.parametrize("features", [72, 130, 256, 257])
def test_wide_heads(device, rng, dtype, limit, features):
    arrays = [rng.standard_normal((1, 2, 19, features)) for _ in range(4)]
    results = []
    for where, kind in ((device, dtype), ("cpu", "float64")):
        query, key, value = (
            torch.from_numpy(a).to(getattr(torch, dtype)).to(getattr(torch, kind)).to(where).requires_grad_()
            for a in arrays[:3]
        )
        out = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        out.backward(torch.from_numpy(arrays[3]).to(out.dtype).to(where))
        results.append([t.detach().cpu().to(torch.float64).numpy() for t in (out, query.grad, key.grad, value.grad)])
    for mine, right in zip(*results, strict=True):
        np.testing.assert_allclose(mine, right, rtol=limit, atol=limit)
