"""`torch._prims_common`. Expected values were recorded from PyTorch 2.13."""

import pytest

import torchlite as torch
from torchlite import _prims_common as prims

KIND = prims.ELEMENTWISE_TYPE_PROMOTION_KIND


@pytest.mark.parametrize(
    ("given", "kind", "dtypes"),
    [
        ((torch.ones(2, dtype=torch.int32), 1.5), KIND.DEFAULT, (torch.float32, torch.float32)),
        ((torch.ones(2).half(), 1), KIND.DEFAULT, (torch.float32, torch.float16)),
        ((torch.ones(2).half(), 1), KIND.NO_OPMATH, (torch.float16, torch.float16)),
        ((torch.ones(2, dtype=torch.int8), torch.tensor(1)), KIND.DEFAULT, (torch.int8, torch.int8)),
        ((torch.ones(2, dtype=torch.int8), True), KIND.INT_TO_FLOAT, (torch.float32, torch.float32)),
        ((torch.ones(2).double(), 1j), KIND.DEFAULT, (torch.complex128, torch.complex128)),
        ((torch.ones(2) + 1j,), KIND.COMPLEX_TO_FLOAT, (torch.complex64, torch.float32)),
        ((torch.ones(2), torch.ones(2).double()), KIND.ALWAYS_BOOL, (torch.float64, torch.bool)),
        ((True,), KIND.BOOL_TO_LONG, (torch.int64, torch.int64)),
    ],
)
def test_elementwise_dtypes(given, kind, dtypes):
    assert prims.elementwise_dtypes(*given, type_promotion_kind=kind) == dtypes


def test_strides_and_dimensions():
    assert prims.make_contiguous_strides_for((2, 0, 3)) == (3, 3, 1)
    assert prims.make_contiguous_strides_for(()) == ()
    assert prims.make_channels_last_strides_for((2, 3, 4, 5)) == (60, 1, 15, 3)
    assert prims.suggest_memory_format(torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last)) == (
        torch.channels_last
    )
    assert prims.canonicalize_dims(3, [-1, 0]) == (2, 0) and prims.reduction_dims((2, 3), None) == (0, 1)
    assert prims.invert_perm([2, 0, 1]) == [1, 2, 0] and prims.is_expandable_to((3, 1), (2, 3, 4))
    assert prims.is_contiguous_or_false(torch.ones(2, 3)) and not prims.is_contiguous_or_false(torch.ones(2, 3).t())
    with pytest.raises(IndexError, match="out of range"):
        prims.canonicalize_dim(2, 2)
    with pytest.raises(RuntimeError, match="expected dtype"):
        prims.check_same_dtype(torch.ones(1), torch.ones(1).double())
