"""Masks of blocks of a matrix, of which those at the lower and right edge may be smaller."""

from __future__ import annotations

import math

import torchlite as torch
import torchlite.nn.functional as F
from torchlite import Tensor


def mask_of_least_blocks(norms: Tensor, share: float, block: tuple[int, int], keep: int = 0) -> Tensor:
    """Return a mask with zeros in a share of the blocks: those with the least means. At least `keep` blocks stay,
    unless the share is all of them.
    """
    means = norms
    if math.prod(block) > 1:
        means = F.avg_pool2d(norms[None, None], block, stride=block, ceil_mode=True)[0, 0]
    blocks = torch.ones(means.shape, device=norms.device)
    if share >= 1.0:
        blocks.zero_()
    elif share > 0.0:
        count = min(round(share * means.numel()), means.numel() - keep)
        blocks.view(-1)[torch.topk(means.flatten(), max(count, 0), largest=False).indices] = 0
    whole = blocks.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)
    return whole[: norms.shape[0], : norms.shape[1]].contiguous()


def mask_of_least_in_blocks(norms: Tensor, zeros_per_block: int, block: tuple[int, int]) -> Tensor:
    """Return a mask with as many zeros in each block, at its least numbers."""
    rows, columns = norms.shape
    height, width = block
    if zeros_per_block == height * width:
        return torch.zeros(norms.shape, device=norms.device)
    # What is behind the edges is not a number, which is greater than all.
    padded = F.pad(norms, (0, -columns % width, 0, -rows % height), value=math.nan)
    blocks = padded.unfold(0, height, height).unfold(1, width, width)
    flat = blocks.reshape(*blocks.shape[:2], -1)
    least = torch.topk(flat, zeros_per_block, dim=-1, largest=False).indices
    mask = torch.ones(flat.shape, device=norms.device).scatter_(-1, least, 0)
    return mask.reshape(blocks.shape).transpose(1, 2).reshape(padded.shape)[:rows, :columns].contiguous()
