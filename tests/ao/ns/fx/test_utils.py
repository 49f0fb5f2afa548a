"""Measures of the difference between two networks; the values are PyTorch's."""

import torchlite as torch
from torchlite.ao.ns.fx.utils import compute_cosine_similarity, compute_normalized_l2_error, compute_sqnr


def test_measures(device):
    x = torch.tensor([1.0, 2.0, 3.0], device=device)
    y = torch.tensor([1.0, 2.5, 2.0], device=device)
    assert abs(compute_sqnr(x, y).item() - 10.4921798706) < 1e-5
    assert abs(compute_normalized_l2_error(x, y).item() - 0.2988071442) < 1e-6
    assert abs(compute_cosine_similarity(x, y.reshape(3, 1)).item() - 0.9561828375) < 1e-6
    both = compute_sqnr((x, y), (y, x))
    assert isinstance(both, list) and len(both) == 2 and compute_sqnr([x], [y])[0] == both[0]
    assert compute_sqnr(x.double(), y.double()) is None


def test_quantized_tensors_are_read():
    x = torch.tensor([1.0, 2.0, 3.0])
    levels = torch.quantize_per_tensor(x, 1.0, 0, torch.qint8)
    assert compute_normalized_l2_error(x, levels) == 0
