"""Fixtures of the tests of OpenCL's kernels."""

from __future__ import annotations

import numpy as np
import pytest

import torchlite as torch


@pytest.fixture(params=["as it is", "as a GPU"])
def any_form(request, opencl):
    """The device, and again with the kernels that a GPU would be given."""
    from torchlite_backends.device_runtime.core.device import BoundedCache

    state = torch.ones(1, device=opencl)._tl_array.device
    before = state.is_cpu, state.plans, state._kept
    if request.param == "as a GPU":
        if not state.is_cpu:
            pytest.skip("it is one")
        state.is_cpu, state.plans, state._kept = False, BoundedCache(20000), {}
    yield opencl
    state.is_cpu, state.plans, state._kept = before


@pytest.fixture(autouse=True)
def _numpy_is_silent():
    """Kernels are called as the dispatch calls them: where NumPy does not warn."""
    with np.errstate(all="ignore"):
        yield
