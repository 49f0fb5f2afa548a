"""Non-maximum suppression and IoU of rotated boxes, in NumPy on the host."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..op_spec import require


def nms(dets: Any, scores: Any, iou_threshold: float) -> Any:
    """Return the indices (int64) of boxes (N, 4) kept by non-maximum suppression, best first. Raise RuntimeError for
    other shapes.
    """
    import torchlite as torch

    require(dets.ndim == 2, lambda: f"boxes should be a 2d tensor, got {dets.ndim}D")
    require(dets.shape[1] == 4, lambda: f"boxes should have 4 elements in dimension 1, got {dets.shape[1]}")
    require(scores.ndim == 1, lambda: f"scores should be a 1d tensor, got {scores.ndim}D")
    require(
        dets.shape[0] == scores.shape[0],
        lambda: (
            "boxes and scores should have same number of elements in dimension 0, got "
            f"{dets.shape[0]} and {scores.shape[0]}"
        ),
    )
    if not dets.is_floating_point():
        raise NotImplementedError(f"\"nms_kernel\" not implemented for '{dets.type()[6:-6]}'")
    boxes = dets.detach().cpu()
    boxes = (boxes.float() if boxes.dtype.itemsize < 4 else boxes).numpy()
    order = scores.detach().cpu().sort(stable=True, descending=True)[1].numpy()
    return torch.from_numpy(_suppress(boxes[order], order, iou_threshold)).to(dets.device)


def _suppress(boxes: np.ndarray, order: np.ndarray, threshold: float) -> np.ndarray:
    """Return the positions in `order` of boxes that no better box overlaps."""
    x1, y1, x2, y2 = np.ascontiguousarray(boxes.T)
    areas = (x2 - x1) * (y2 - y1)
    left = np.arange(len(order))
    kept = []
    with np.errstate(invalid="ignore", divide="ignore"):
        while len(left):
            best, left = left[0], left[1:]
            kept.append(order[best])
            width = np.minimum(x2[best], x2[left]) - np.maximum(x1[best], x1[left])
            height = np.minimum(y2[best], y2[left]) - np.maximum(y1[best], y1[left])
            shared = np.maximum(width, 0) * np.maximum(height, 0)
            overlap = shared / (areas[best] + areas[left] - shared)
            left = left[~(overlap > threshold)]
    return np.array(kept, np.int64)


def box_iou_rotated(boxes1: Any, boxes2: Any) -> Any:
    """Return the IoU (N, M) of boxes (N, 5) and (M, 5): centre, width, height, angle in degrees."""
    import torchlite as torch

    first, second = (b.detach().cpu().double().numpy() for b in (boxes1, boxes2))
    one, two = np.broadcast_arrays(first[:, None], second[None, :])
    shared = _intersection_area(one, two)
    areas = one[..., 2] * one[..., 3] + two[..., 2] * two[..., 3]
    with np.errstate(invalid="ignore", divide="ignore"):
        found = np.where(shared > 0, shared / (areas - shared), 0)
    return torch.from_numpy(found).to(boxes1.device, boxes1.dtype if boxes1.is_floating_point() else torch.float32)


def _intersection_area(one: np.ndarray, two: np.ndarray) -> np.ndarray:
    """Return the intersection area of rotated boxes: the polygon of inner corners and edge crossings."""
    offset = (one[..., :2] + two[..., :2])[..., None, :] / 2
    corners = [_corners(box) - offset for box in (one, two)]
    inside = [_points_in_box(corners[i], corners[1 - i]) for i in (0, 1)]
    crossings, crossed = _edge_intersections(*corners)
    points = np.concatenate([*corners, crossings], axis=-2)
    valid = np.concatenate([*inside, crossed], axis=-1)
    count = valid.sum(-1)
    centre = (points * valid[..., None]).sum(-2) / np.maximum(count, 1)[..., None]
    away = points - centre[..., None, :]
    angle = np.where(valid, np.arctan2(away[..., 1], away[..., 0]), np.inf)
    order = np.argsort(angle, axis=-1)
    around = np.take_along_axis(away, order[..., None], axis=-2)
    # Invalid points sort last and coincide with the first corner, so they add no area.
    around = np.where(np.take_along_axis(valid, order, -1)[..., None], around, around[..., :1, :])
    following = np.roll(around, -1, axis=-2)
    area = (around[..., 0] * following[..., 1] - around[..., 1] * following[..., 0]).sum(-1) / 2
    return np.where(count > 2, np.abs(area), 0)


def _corners(box: np.ndarray) -> np.ndarray:
    """Return the four corners (..., 4, 2) in order."""
    turn = np.deg2rad(box[..., 4])
    across = np.stack([np.cos(turn), -np.sin(turn)], -1) * box[..., 2:3] / 2
    along = np.stack([np.sin(turn), np.cos(turn)], -1) * box[..., 3:4] / 2
    return box[..., None, :2] + np.stack([-across - along, across - along, across + along, along - across], -2)


def _points_in_box(points: np.ndarray, box: np.ndarray) -> np.ndarray:
    """Return which points (..., P, 2) lie in a box (..., 4, 2), boundary included."""
    start, across, along = box[..., 0, :], box[..., 1, :] - box[..., 0, :], box[..., 3, :] - box[..., 0, :]
    away = points - start[..., None, :]
    inside = np.ones(points.shape[:-1], bool)
    for side in (across, along):
        place = (away * side[..., None, :]).sum(-1)
        length = (side * side).sum(-1)[..., None]
        inside &= (place >= -1e-9 * length) & (place <= (1 + 1e-9) * length)
    return inside


def _edge_intersections(one: np.ndarray, two: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the crossings (..., 16, 2) of two boxes' edges, and a validity mask."""
    start1, start2 = one[..., :, None, :], two[..., None, :, :]
    way1 = np.roll(one, -1, axis=-2)[..., :, None, :] - start1
    way2 = np.roll(two, -1, axis=-2)[..., None, :, :] - start2
    between = start2 - start1
    turn = way1[..., 0] * way2[..., 1] - way1[..., 1] * way2[..., 0]
    crossing = np.abs(turn) > 1e-14
    safe = np.where(crossing, turn, 1)
    t1 = (between[..., 0] * way2[..., 1] - between[..., 1] * way2[..., 0]) / safe
    t2 = (between[..., 0] * way1[..., 1] - between[..., 1] * way1[..., 0]) / safe
    crossing &= (t1 >= 0) & (t1 <= 1) & (t2 >= 0) & (t2 <= 1)
    points = start1 + way1 * t1[..., None]
    return points.reshape(*points.shape[:-3], 16, 2), crossing.reshape(*crossing.shape[:-2], 16)
