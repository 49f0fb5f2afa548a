"""Tables of a device's kernels."""

from __future__ import annotations

import subprocess
import sys

import pytest

from torchlite_backends.device_runtime.backend import KernelsByNeed, kernels_of

_PROGRAM = """
import sys
from torchlite_backends.device_runtime.backend import KernelsByNeed
kernels = KernelsByNeed(None)
kernels["neg"], kernels["_clamp_scalars"]
assert "torchlite_backends.device_runtime.nn.softmax" not in sys.modules
kernels["_softmax"]
assert "torchlite_backends.device_runtime.nn.softmax" in sys.modules
"""


def test_modules_are_imported_when_an_op_needs_them():
    subprocess.run([sys.executable, "-c", _PROGRAM], check=True)


def test_kernels_by_need_are_all_kernels():
    found = KernelsByNeed(None)
    assert callable(found["_softmax"]) and set(found) == set(kernels_of(None))
    with pytest.raises(KeyError, match="no_op"):
        found["no_op"]
