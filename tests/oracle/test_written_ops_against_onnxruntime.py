"""Every op of the op table, with each argument off its value, as an ONNX model that onnxruntime runs."""

import pytest

from tests.onnx.written_ops import NOT_WRITTEN, OPS, cases, read_by_onnxruntime, read_by_torchlite, wrong_cases
from tests.ops.op_db import ROWS

onnxruntime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.oracle
REFUSED = frozenset(NOT_WRITTEN.read_text().split())


def read(data, inputs):
    """The results by onnxruntime; by torchlite where onnxruntime has no kernel for a type of elements."""
    try:
        return read_by_onnxruntime(data, inputs)
    except onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented:
        return read_by_torchlite(data, inputs)


@pytest.mark.parametrize("name", [name for name in OPS if name not in REFUSED])
def test_results_are_those_of_the_call(name):
    assert not wrong_cases(cases(ROWS[name]), read)
