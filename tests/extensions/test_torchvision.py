"""Ops of torchvision's compiled library, which torchlite has itself: against their definitions, element by element."""

from __future__ import annotations

import math

import numpy as np
import pytest

import torchlite as torch

torch.ops.load_library("/site-packages/torchvision/_C.so")
ops = torch.ops.torchvision
ROIS = [[0, 1.0, 2.0, 9.5, 7.25], [1, -6.0, -3.0, 4.0, 30.0], [0, 5.0, 5.0, 5.0, 5.0], [1, 9.0, 6.0, 4.0, 2.0]]


def interpolated(plane, y, x):
    """The value of a plane between its pixels, as the op has it at the edges."""
    height, width = plane.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return 0.0
    y, x = min(max(y, 0), height - 1), min(max(x, 0), width - 1)
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    upper = plane[top, left] * (left + 1 - x) + plane[top, right] * (x - left)
    lower = plane[bottom, left] * (left + 1 - x) + plane[bottom, right] * (x - left)
    return upper * (top + 1 - y) + lower * (y - top)


def bins_of(roi, scale, bins, sampling, offset, least):
    """For each bin its points (y, x)."""
    x1, y1, x2, y2 = (v * scale - offset for v in roi[1:])
    tall, wide = (max(v, least) for v in (y2 - y1, x2 - x1))
    counts = [sampling if sampling > 0 else math.ceil(size / n) for size, n in ((tall, bins[0]), (wide, bins[1]))]
    for p, q in np.ndindex(*bins):
        ys = [y1 + (p + (i + 0.5) / counts[0]) * tall / bins[0] for i in range(counts[0])]
        xs = [x1 + (q + (i + 0.5) / counts[1]) * wide / bins[1] for i in range(counts[1])]
        yield p, q, [(y, x) for y in ys for x in xs]


@pytest.mark.parametrize("sampling", [-1, 2])
@pytest.mark.parametrize("aligned", [False, True])
def test_regions_are_means_of_interpolated_points(device, sampling, aligned):
    images = np.random.default_rng(0).standard_normal((2, 3, 9, 11)).astype(np.float32)
    x = torch.from_numpy(images).to(device).requires_grad_()
    out = ops.roi_align(x, torch.tensor(ROIS).to(device), 0.7, 2, 3, sampling, aligned)
    want = np.zeros((4, 3, 2, 3))
    for k, roi in enumerate(ROIS):
        for p, q, points in bins_of(roi, 0.7, (2, 3), sampling, 0.5 * aligned, -math.inf if aligned else 1.0):
            for c in range(3):
                values = [interpolated(images[int(roi[0]), c], y, x) for y, x in points]
                want[k, c, p, q] = sum(values) / max(len(values), 1)
    np.testing.assert_allclose(out.detach().cpu().numpy(), want, atol=1e-5)
    out.square().sum().backward()  # of a linear map A: 2 A'A x, so that its product with x is 2 |A x|^2
    assert float((x.grad * x).sum()) == pytest.approx(2 * float(out.detach().square().sum()), rel=1e-4)


def test_position_sensitive_regions(device):
    images = np.random.default_rng(1).standard_normal((2, 12, 9, 11)).astype(np.float32)
    x = torch.from_numpy(images).to(device).requires_grad_()
    rois = torch.tensor(ROIS[:2]).to(device)
    out, mapping = ops.ps_roi_align(x, rois, 0.7, 2, 3, 2)
    assert mapping.dtype == torch.int32 and mapping[0].flatten().tolist() == list(range(12))
    for k, roi in enumerate(ROIS[:2]):
        for p, q, points in bins_of(roi, 0.7, (2, 3), 2, 0.5, -math.inf):
            for c in range(2):
                plane = images[int(roi[0]), (c * 2 + p) * 3 + q]
                want = sum(interpolated(plane, y, x) for y, x in points) / 4
                assert float(out[k, c, p, q]) == pytest.approx(want, abs=1e-5)
    out.square().sum().backward()
    assert float((x.grad * x).sum()) == pytest.approx(2 * float(out.detach().square().sum()), rel=1e-4)
    empty, _ = ops.ps_roi_align(x, torch.tensor([ROIS[2]]).to(device), 1.0, 2, 3, -1)
    assert bool(empty.isnan().all())  # the mean of no points
    pooled, _ = ops.ps_roi_pool(x, torch.tensor([[0, 1.0, 2.0, 7.0, 6.0]]).to(device), 1.0, 2, 3)
    plane = images[0, (1 * 2 + 1) * 3 + 2]
    assert float(pooled[0, 1, 1, 2]) == pytest.approx(plane[4:6, 5:7].mean(), abs=1e-5)


def test_greatest_pixels(device):
    images = np.random.default_rng(2).standard_normal((2, 3, 8, 8)).astype(np.float32)
    x = torch.from_numpy(images).to(device).requires_grad_()
    rois = torch.tensor([[1, 0.0, 0.0, 3.0, 3.0], [0, 20.0, 20.0, 30.0, 30.0]]).to(device)
    out, place = ops.roi_pool(x, rois, 1.0, 2, 2)
    np.testing.assert_array_equal(
        out[0].detach().cpu().numpy(), images[1, :, :4, :4].reshape(3, 2, 2, 2, 2).max((2, 4))
    )
    assert not out[1].any() and bool((place[1] == -1).all()) and place.dtype == torch.int32
    assert images[1, 2].ravel()[int(place[0, 2, 1, 1])] == float(out[0, 2, 1, 1])
    (2 * out).sum().backward()
    assert float(x.grad.sum()) == 2 * 3 * 4 and int((x.grad != 0).sum()) == 12


def test_boxes_that_better_ones_overlap_are_left_out(device):
    rng = np.random.default_rng(3)
    corners = rng.random((200, 2)) * 20
    boxes = np.concatenate([corners, corners + rng.random((200, 2)) * 10], 1).astype(np.float32)
    scores = rng.integers(0, 50, 200).astype(np.float32)  # with ties
    kept: list[int] = []
    for i in np.argsort(-scores, kind="stable").tolist():
        x1, y1 = np.maximum(boxes[kept, :2], boxes[i, :2]).T.reshape(2, -1)
        x2, y2 = np.minimum(boxes[kept, 2:], boxes[i, 2:]).T.reshape(2, -1)
        shared = np.maximum(x2 - x1, 0) * np.maximum(y2 - y1, 0)
        area = (boxes[:, 2:] - boxes[:, :2]).prod(1)
        if not (shared / (area[kept] + area[i] - shared) > 0.4).any():
            kept.append(i)
    found = ops.nms(torch.from_numpy(boxes).to(device), torch.from_numpy(scores).to(device), 0.4)
    assert found.tolist() == kept and found.dtype == torch.int64 and found.device.type == torch.device(device).type
    assert ops.nms(torch.zeros(0, 4, device=device), torch.zeros(0, device=device), 0.5).shape == (0,)
    with pytest.raises(RuntimeError, match="boxes should have 4 elements in dimension 1, got 3"):
        ops.nms(torch.zeros(2, 3), torch.zeros(2), 0.5)


def test_overlap_of_turned_boxes():
    one = torch.tensor([[0, 0, 2, 2, 0.0], [0, 0, 4, 2, 30.0]])
    two = torch.tensor([[0, 0, 2, 2, 45.0], [1, 0, 2, 2, 90.0], [9, 9, 1, 1, 10.0], [0, 0, 4, 2, 210.0]])
    octagon = 8 * (math.sqrt(2) - 1)
    found = ops.box_iou_rotated(one, two)
    assert found[0, 0].item() == pytest.approx(octagon / (8 - octagon))
    assert found[0, 1].item() == pytest.approx(2 / 6)
    assert found[:, 2].tolist() == [0, 0]
    assert found[1, 3].item() == pytest.approx(1)


def test_deformed_convolution(device):
    torch.manual_seed(0)
    x, weight, bias = (torch.randn(shape).to(device) for shape in ((2, 4, 6, 7), (6, 2, 3, 3), (6,)))
    offset = torch.zeros(2, 36, 6, 7, device=device)
    mask = torch.ones(2, 18, 6, 7, device=device)
    numbers = (1, 1, 1, 1, 1, 1, 2, 2, True)
    plain = torch.nn.functional.conv2d(x, weight, bias, padding=1, groups=2)
    torch.testing.assert_close(ops.deform_conv2d(x, weight, offset, mask, bias, *numbers), plain)
    offset[:, 0::2] = 1.0  # all rows one further down
    moved = torch.nn.functional.conv2d(torch.nn.functional.pad(x, (1, 1, 0, 2)), weight, bias, groups=2)
    torch.testing.assert_close(ops.deform_conv2d(x, weight, offset, mask, bias, *numbers), moved)


def test_gradients_of_a_deformed_convolution():
    torch.manual_seed(0)
    shapes = ((1, 2, 4, 4), (2, 2, 2, 2), (1, 8, 3, 3), (1, 4, 3, 3), (2,))
    values = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    assert torch.autograd.gradcheck(lambda *v: ops.deform_conv2d(*v, 1, 1, 0, 0, 1, 1, 1, 1, True), values)


def test_kernels_under_autocast_keys():
    """A kernel under an Autocast key runs where autocast is on, as packages register them."""
    lib = torch.library.Library("test_casting", "DEF")
    lib.define("twice(Tensor x) -> Tensor")
    lib.impl("twice", lambda x: 2 * x, "CompositeExplicitAutograd")

    def casting(x):
        with torch._C._ExcludeDispatchKeyGuard(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU)):
            return torch.ops.test_casting.twice(x.double())

    lib.impl("twice", casting, "AutocastCPU")
    x = torch.ones(2)
    assert torch.ops.test_casting.twice(x).dtype == torch.float32
    with torch.autocast("cpu"):
        assert torch.ops.test_casting.twice(x).dtype == torch.float64


def test_other_libraries_are_refused():
    with pytest.raises(OSError, match="It is built for PyTorch's C"):
        torch.ops.load_library("/site-packages/elsewhere/_C.so")


def test_the_tensors_of_a_deformed_convolution_have_four_dimensions():
    x, weight, bias = torch.zeros(2, 4, 6, 7), torch.zeros(6, 2, 3, 3), torch.zeros(6)
    numbers = (1, 1, 1, 1, 1, 1, 2, 2, False)
    for given in ((x[0], torch.zeros(2, 36, 6, 7)), (x, torch.zeros(36, 6, 7))):
        with pytest.raises(RuntimeError, match="Expected tensors of 4 dimensions"):
            ops.deform_conv2d(given[0], weight, given[1], torch.zeros(0), bias, *numbers)
