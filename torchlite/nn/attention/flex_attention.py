"""Attention with user-defined scores and masks.

`score_mod(score, batch, head, query, key)` changes scores; `mask_mod(batch, head, query, key)` returns true for the
positions that count. Each is called once, with indices that broadcast over all positions. A function written for single
positions works if it consists of ops.
"""

from __future__ import annotations

import inspect
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torchlite as torch
from torchlite import Tensor

__all__ = [
    "AuxOutput", "AuxRequest", "BlockMask", "FlexKernelOptions", "and_masks", "create_block_mask", "create_mask",
    "flex_attention", "noop_mask", "or_masks",
]  # fmt: skip

_DEFAULT_SPARSE_BLOCK_SIZE = 128
_LARGE_SPARSE_BLOCK_SIZE = 1 << 30
FlexKernelOptions = dict[str, Any]


class AuxRequest(NamedTuple):
    """The additional outputs that `flex_attention` returns."""

    lse: bool = False
    max_scores: bool = False


class AuxOutput(NamedTuple):
    """The additional outputs of `flex_attention`, (B, H, queries) each: log-sum-exp and maximum of the scores."""

    lse: Tensor | None = None
    max_scores: Tensor | None = None


def noop_mask(batch: Tensor, head: Tensor, token_q: Tensor, token_kv: Tensor) -> Tensor:
    """A mask of which everything counts. `head`, `token_q` and `token_kv` have no effect."""
    return batch.new_ones((), dtype=torch.bool, device=batch.device)


def _combine_mask_mods(
    mask_mods: tuple[Callable[..., Any], ...], start: bool, join: Callable[[Tensor, Any], Tensor]
) -> Any:
    if not all(callable(mod) for mod in mask_mods):
        raise RuntimeError(f"All inputs should be callable mask_mods: {mask_mods}")

    def mask(b: Tensor, h: Tensor, q_idx: Tensor, kv_idx: Tensor) -> Tensor:
        result = b.new_full((), start, dtype=torch.bool)
        for mod in mask_mods:
            result = join(result, mod(b, h, q_idx, kv_idx))
        return result

    return mask


def and_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return a mask_mod that is true where all of the given ones are."""
    return _combine_mask_mods(mask_mods, True, lambda a, b: a & b)


def or_masks(*mask_mods: Callable[..., Any]) -> Callable[..., Tensor]:
    """Return a mask_mod that is true where any of the given ones is."""
    return _combine_mask_mods(mask_mods, False, lambda a, b: a | b)


def _index_grids(shape: tuple[int, ...], device: Any) -> list[Tensor]:
    """Return the positions of each dimension, as tensors that broadcast against each other."""
    return [
        torch.arange(size, device=device).reshape([-1 if d == i else 1 for d in range(len(shape))])
        for i, size in enumerate(shape)
    ]


def _evaluate_mod(mod: Callable[..., Any], shape: tuple[int, ...], device: Any, *score: Tensor) -> Tensor:
    """Return the values of a mod function at all positions, of the given shape."""
    return torch.as_tensor(mod(*score, *_index_grids(shape, device)), device=device).expand(shape)


def create_mask(
    mod_fn: Callable[..., Any], B: int | None, H: int | None, Q_LEN: int, KV_LEN: int, device: Any = None
) -> Tensor:
    """Return the mask (B, H, Q_LEN, KV_LEN) of a mask_mod; of a score_mod, True where its scores are not -inf.

    >>> create_mask(lambda b, h, q, k: q >= k, 1, 1, 2, 2)
    tensor([[[[ True, False],
              [ True,  True]]]])
    """
    shape = (1 if B is None else B, 1 if H is None else H, Q_LEN, KV_LEN)
    if _is_score_mod(mod_fn):
        return ~torch.isneginf(_evaluate_mod(mod_fn, shape, device, torch.zeros(shape, device=device)))
    return _evaluate_mod(mod_fn, shape, device).to(torch.bool)


def _is_score_mod(mod: Callable[..., Any]) -> bool:
    """True if a function is a score_mod (five positional parameters) and no mask_mod (four)."""
    kinds = inspect.Parameter
    places = [
        p
        for p in inspect.signature(mod).parameters.values()
        if p.default is kinds.empty and p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    if len(places) not in (4, 5):
        raise AssertionError(f"expected a mask_mod of 4 or a score_mod of 5 positional arguments, got {len(places)}")
    return len(places) == 5


def _dense_to_ordered(blocks: Tensor) -> tuple[Tensor, Tensor]:
    """Return the number of set blocks of each row, and the block indices with the set ones first."""
    counts = blocks.sum(dim=-1).to(torch.int32)
    order = torch.argsort(blocks.to(torch.int32), dim=-1, descending=True, stable=True).to(torch.int32)
    return counts, order


def _ordered_to_dense(counts: Tensor, order: Tensor) -> Tensor:
    """The blocks that are set, from their lists."""
    columns = order.shape[-1]
    places = torch.arange(columns, device=order.device) < counts.unsqueeze(-1)
    return torch.zeros(order.shape, dtype=torch.int32, device=order.device).scatter(
        -1, order.to(torch.int64), places.to(torch.int32)
    )


def _to_pair(size: Any) -> tuple[int, int]:
    return (size, size) if isinstance(size, int) else (size[0], size[1])


class BlockMask:
    """A block mask: the blocks of keys that each block of queries sees partially (`kv_indices`, the first
    `kv_num_blocks` of a row) and fully (`full_kv_indices`), and the transposed tables (`q_indices` …). Inside partial
    blocks `mask_mod` decides.

    `dq_write_order`, `dq_write_order_full`, `dq_kv_order` and `dq_kv_order_spt` have no effect: they order the writes
    of a Triton kernel.
    """

    def __init__(
        self,
        seq_lengths: tuple[int, int],
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None,
        full_kv_indices: Tensor | None,
        q_num_blocks: Tensor | None,
        q_indices: Tensor | None,
        full_q_num_blocks: Tensor | None,
        full_q_indices: Tensor | None,
        BLOCK_SIZE: tuple[int, int] = (_DEFAULT_SPARSE_BLOCK_SIZE, _DEFAULT_SPARSE_BLOCK_SIZE),
        mask_mod: Callable[..., Any] = noop_mask,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | None = None,
        dq_kv_order_spt: bool | None = None,
    ) -> None:
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        if (full_q_num_blocks is None) != (full_q_indices is None):
            raise AssertionError("full_q_num_blocks and full_q_indices must be both provided or omitted")
        self.seq_lengths = seq_lengths
        self.kv_num_blocks, self.kv_indices = kv_num_blocks, kv_indices
        self.full_kv_num_blocks, self.full_kv_indices = full_kv_num_blocks, full_kv_indices
        self.q_num_blocks, self.q_indices = q_num_blocks, q_indices
        self.full_q_num_blocks, self.full_q_indices = full_q_num_blocks, full_q_indices
        self.BLOCK_SIZE, self.mask_mod = BLOCK_SIZE, mask_mod

    _TENSORS = (
        "kv_num_blocks", "kv_indices", "full_kv_num_blocks", "full_kv_indices", "q_num_blocks", "q_indices",
        "full_q_num_blocks", "full_q_indices",
    )  # fmt: skip

    @classmethod
    def from_kv_blocks(
        cls,
        kv_num_blocks: Tensor,
        kv_indices: Tensor,
        full_kv_num_blocks: Tensor | None = None,
        full_kv_indices: Tensor | None = None,
        BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
        mask_mod: Callable[..., Any] | None = None,
        seq_lengths: tuple[int, int] | None = None,
        compute_q_blocks: bool = True,
        *,
        dq_write_order: Tensor | None = None,
        dq_write_order_full: Tensor | None = None,
        dq_kv_order: Tensor | bool | None = None,
    ) -> BlockMask:
        """Return a BlockMask from the key blocks of each query block; the query blocks of each key block are computed.
        `dq_write_order`, `dq_write_order_full` and `dq_kv_order` have no effect: they order the writes of a Triton
        kernel.
        """
        if kv_indices.dim() < 2:
            raise RuntimeError("BlockMask must have at least 2 dimensions")
        if (full_kv_num_blocks is None) != (full_kv_indices is None):
            raise AssertionError("full_kv_num_blocks and full_kv_indices must be both provided or omitted")
        size = _to_pair(BLOCK_SIZE)
        seen: list[Any] = [None] * 4
        if compute_q_blocks:
            seen[:2] = _dense_to_ordered(_ordered_to_dense(kv_num_blocks, kv_indices).transpose(-2, -1))
            if full_kv_num_blocks is not None and full_kv_indices is not None:
                seen[2:] = _dense_to_ordered(_ordered_to_dense(full_kv_num_blocks, full_kv_indices).transpose(-2, -1))
        if seq_lengths is None:
            seq_lengths = (kv_indices.shape[-2] * size[0], kv_indices.shape[-1] * size[1])
        make: Callable[..., BlockMask] = cls
        return make(
            seq_lengths, kv_num_blocks, kv_indices, full_kv_num_blocks, full_kv_indices, *seen, size,
            mask_mod if mask_mod is not None else noop_mask,
        )  # fmt: skip

    def as_tuple(self, flatten: bool = True) -> tuple[Any, ...]:
        """Return the fields of the mask as a tuple."""
        tensors = tuple(getattr(self, name) for name in self._TENSORS)
        if flatten:
            return (*self.seq_lengths, *tensors, *self.BLOCK_SIZE, self.mask_mod)
        return (self.seq_lengths, *tensors, self.BLOCK_SIZE, self.mask_mod)

    @property
    def shape(self) -> tuple[int, ...]:
        """(B, H, queries, keys)."""
        return (*self.kv_indices.shape[:-2], *self.seq_lengths)

    def numel(self) -> int:
        """Return the number of positions."""
        return math.prod(self.shape)

    def to_dense(self) -> Tensor:
        """Return 1 for each block that is visible, at least partially."""
        dense = _ordered_to_dense(self.kv_num_blocks, self.kv_indices)
        if self.full_kv_num_blocks is not None and self.full_kv_indices is not None:
            return dense | _ordered_to_dense(self.full_kv_num_blocks, self.full_kv_indices)
        return dense

    def sparsity(self) -> float:
        """Return the percentage of positions in blocks that are masked out."""
        seen = self.kv_num_blocks.sum()
        if self.full_kv_num_blocks is not None:
            seen = seen + self.full_kv_num_blocks.sum()
        return 100 * (1 - seen.item() * self.BLOCK_SIZE[0] * self.BLOCK_SIZE[1] / self.numel())

    def to(self, device: Any) -> BlockMask:
        """The mask on a device."""
        return self._map_tensors(lambda x: x.to(device))

    def _map_tensors(self, change: Callable[[Tensor], Tensor]) -> BlockMask:
        tensors = [getattr(self, name) for name in self._TENSORS]
        make: Callable[..., BlockMask] = BlockMask
        return make(self.seq_lengths, *(x if x is None else change(x) for x in tensors), self.BLOCK_SIZE, self.mask_mod)

    def __getitem__(self, index: Any) -> BlockMask:
        """Index batches and heads (and blocks of queries). The blocks of queries are recomputed for the result;
        `mask_mod` is unchanged.
        """
        index = index if isinstance(index, tuple) else (index,)
        index = tuple(slice(i, None if i == -1 else i + 1) if isinstance(i, int) else i for i in index)
        parts = [getattr(self, name) for name in self._TENSORS[:4]]
        taken: list[Any] = [x if x is None else x[index] for x in parts]
        counts, order, full_counts, full_order = taken
        return BlockMask.from_kv_blocks(
            counts, order, full_counts, full_order, self.BLOCK_SIZE, None, self.seq_lengths, self.q_indices is not None
        )

    def __repr__(self) -> str:
        def shown(value: Any) -> Any:
            return value.shape if isinstance(value, Tensor) else value

        lines = "".join(f"    {name}={shown(getattr(self, name))},\n" for name in self._TENSORS)
        return (
            f"BlockMask(\n{lines}    BLOCK_SIZE={self.BLOCK_SIZE},\n    shape={self.shape},\n"
            f"    sparsity={self.sparsity():.2f}%,\n    mask_mod={getattr(self.mask_mod, '__name__', self.mask_mod)}\n)"
        )

    def to_string(self, grid_size: int | tuple[int, int] = (20, 20), limit: int = 4) -> str:
        """Draws the blocks of each batch and head: a full block is one that some position of each query block sees.

        Args:
            grid_size: The greatest numbers of rows and columns of a drawing, one number for both. More blocks are
                drawn together. -1 draws each block. Default: ``(20, 20)``.
            limit: How many batches and heads are drawn. Default: 4.

        Returns:
            The drawings, with two characters for each cell: blank if all its blocks are masked out, shaded if some are.
        """
        dense = self.to_dense()
        rows, columns = dense.shape[-2:]
        most = (grid_size, grid_size) if isinstance(grid_size, int) else grid_size
        height, width = (
            max(1, -(-n // limit)) if limit > 0 else 1 for n, limit in zip((rows, columns), most, strict=True)
        )
        drawings: list[str] = []
        for place in itertools.product(*map(range, dense.shape[:-2])):
            if len(drawings) == limit:
                drawings += [
                    "...",
                    "To print out more, set BlockMask.to_string(limit=N)",
                    "You can also index (BlockMask[batch, head]) to choose a specific batch or head",
                ]
                break
            blocks = dense[place].float()
            lines = [f"{place}"]
            for row in range(0, rows, height):
                shares = [
                    blocks[row : row + height, column : column + width].mean().item()
                    for column in range(0, columns, width)
                ]
                lines.append("".join(2 * ("\u2588" if share == 1 else "\u2591" if share else " ") for share in shares))
            drawings.append("\n".join(lines) + "\n")
        return "\n".join(drawings)

    def __str__(self) -> str:
        drawing = self.to_string().strip()
        return f"BlockMask(shape={self.shape}, sparsity={self.sparsity():.2f}%, \n{drawing}\n)"


def create_block_mask(
    mask_mod: Callable[..., Any],
    B: int | None,
    H: int | None,
    Q_LEN: int,
    KV_LEN: int,
    device: Any = None,
    BLOCK_SIZE: int | tuple[int, int] = _DEFAULT_SPARSE_BLOCK_SIZE,
    _compile: bool = False,
    separate_full_blocks: bool = True,
    compute_dq_write_order: bool = False,
    dq_kv_order: bool = True,
) -> BlockMask:
    """Return the BlockMask of a mask_mod for B batches and H heads (1 for None), Q_LEN queries and KV_LEN keys.

    `compute_dq_write_order` and `dq_kv_order` have no effect: they order the writes of a Triton kernel.

    >>> create_block_mask(lambda b, h, q, k: q >= k, None, None, 4, 4, BLOCK_SIZE=2).to_dense()
    tensor([[[[1, 0],
              [1, 1]]]], dtype=torch.int32)
    """
    if _is_score_mod(mask_mod):
        raise AssertionError(f"create-block_mask requires a mask_mod function! Got {mask_mod}")
    mask = create_mask(mask_mod, B, H, Q_LEN, KV_LEN, device)
    rows, columns = size = _to_pair(BLOCK_SIZE)
    padded = torch.nn.functional.pad(mask, (0, -KV_LEN % columns, 0, -Q_LEN % rows))
    batches, heads, queries, keys = padded.shape
    blocks = padded.reshape(batches, heads, queries // rows, rows, keys // columns, columns)
    sums = blocks.sum(dim=(-3, -1))
    if not separate_full_blocks:
        return BlockMask.from_kv_blocks(
            *_dense_to_ordered(sums > 0), BLOCK_SIZE=size, mask_mod=mask_mod, seq_lengths=(Q_LEN, KV_LEN)
        )
    full = sums == rows * columns
    return BlockMask.from_kv_blocks(
        *_dense_to_ordered((sums > 0) & ~full), *_dense_to_ordered(full), size, mask_mod, seq_lengths=(Q_LEN, KV_LEN)
    )


def _check_inputs(query: Tensor, key: Tensor, value: Tensor, block_mask: BlockMask | None, enable_gqa: bool) -> None:
    if query.dim() != 4 or key.dim() != 4 or value.dim() != 4:
        raise NotImplementedError("NYI: query, key, and value must be 4D tensors")
    if block_mask is None and query.size(0) != key.size(0) and key.size(0) != 1:
        raise ValueError(
            "Expect query and key/value to have the same batch size, or non-none block_mask, "
            f"but got block_mask=None, Bq={query.size(0)}, and Bkv={key.size(0)}."
        )
    if not enable_gqa and query.size(1) != key.size(1):
        raise ValueError(
            "Expect query and key/value to have the same number of heads "
            f"but got Hq={query.size(1)} and Hkv={key.size(1)}. "
            "Try setting enable_gqa=True for GQA."
        )
    if enable_gqa and query.size(1) % key.size(1):
        raise ValueError(
            "Expect number of query heads to be a multiple of kv heads for GQA "
            f"but got Hq={query.size(1)} and Hkv={key.size(1)}."
        )
    if not query.dtype == key.dtype == value.dtype:
        raise ValueError(
            "Expected query, key, and value to have the same dtype, "
            f"but got query.dtype: {query.dtype}, key.dtype: {key.dtype}, and value.dtype: {value.dtype} instead."
        )
    if query.device != key.device or query.device != value.device:
        raise ValueError(
            "Expected query, key, and value to have the same device type, "
            f"but got query.device: {query.device}, key.device: {key.device}, and value.device: {value.device} instead."
        )
    if block_mask is not None and (query.size(-2) > block_mask.shape[-2] or key.size(-2) > block_mask.shape[-1]):
        raise ValueError(
            f"block_mask was created for block_mask.shape={block_mask.shape} but got q_len={query.size(-2)} and "
            f"kv_len={key.size(-2)}. As the block mask was created for a smaller length than you're using it for, you "
            "likely need to create a new block mask."
        )


def _make_dense_mask(block_mask: BlockMask, shape: tuple[int, ...], device: Any) -> Tensor:
    """Return the mask as a dense bool tensor: full blocks count everywhere, partial blocks where mask_mod is true."""
    rows, columns = block_mask.BLOCK_SIZE
    mask = _evaluate_mod(block_mask.mask_mod, shape, device).to(torch.bool)

    def spread(counts: Tensor, order: Tensor) -> Tensor:
        blocks = _ordered_to_dense(counts, order).to(torch.bool)
        lines = blocks.repeat_interleave(min(rows, shape[-2]), -2) if rows > 1 else blocks
        wide = lines.repeat_interleave(min(columns, shape[-1]), -1) if columns > 1 else lines
        return wide[..., : shape[-2], : shape[-1]]

    seen = spread(block_mask.kv_num_blocks, block_mask.kv_indices) & mask
    if block_mask.full_kv_num_blocks is not None and block_mask.full_kv_indices is not None:
        seen = seen | spread(block_mask.full_kv_num_blocks, block_mask.full_kv_indices)
    return seen


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Callable[..., Any] | None = None,
    block_mask: BlockMask | None = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: FlexKernelOptions | None = None,
    *,
    return_aux: AuxRequest | None = None,
) -> Any:
    """Return softmax(score_mod(query key^T * scale), masked by block_mask) value.

    query (B, Hq, L, E), key (B, Hkv, S, E), value (B, Hkv, S, Ev); with `enable_gqa` Hq is a multiple of Hkv. Returns
    (B, Hq, L, Ev), with `return_aux` also an AuxOutput (deprecated: with `return_lse` also the log-sum-exp). A query
    without visible keys yields zeros. All scores are computed: blocks are not skipped yet. ValueError for sizes, dtypes
    or devices that do not fit.

    `kernel_options` has no effect: it tunes Triton kernels.

    >>> q = k = v = torch.ones(1, 1, 2, 4)
    >>> flex_attention(q, k, v, lambda score, b, h, q, k: score + (q - k)).shape
    torch.Size([1, 1, 2, 4])
    """
    if return_lse and return_aux is not None:
        raise ValueError("Cannot specify both return_lse and return_aux.")
    _check_inputs(query, key, value, block_mask, enable_gqa)
    groups = query.size(1) // key.size(1)
    key, value = (x.repeat_interleave(groups, 1) if groups > 1 else x for x in (key, value))
    key, value = (x.expand(query.size(0), -1, -1, -1) for x in (key, value))
    working = torch.float64 if query.dtype == torch.float64 else torch.float32
    factor = 1.0 / math.sqrt(query.size(-1)) if scale is None else scale
    scores = (query.to(working) @ key.to(working).transpose(-2, -1)) * factor
    shape = tuple(scores.shape)
    if score_mod is not None:
        scores = _evaluate_mod(score_mod, shape, query.device, scores).to(working)
    if block_mask is not None:
        scores = scores.masked_fill(~_make_dense_mask(block_mask, shape, query.device), -math.inf)
    largest = scores.amax(-1, keepdim=True)
    blind = largest == -math.inf
    weights = torch.softmax(scores.masked_fill(blind, 0.0), -1).masked_fill(blind, 0.0)
    out = (weights @ value.to(working)).to(query.dtype)
    if return_aux is None and not return_lse:
        return out
    lse = torch.logsumexp(scores.masked_fill(blind, 0.0), -1).masked_fill(blind.squeeze(-1), -math.inf)
    if return_aux is None:
        return out, lse
    return out, AuxOutput(
        lse=lse if return_aux.lse else None, max_scores=largest.squeeze(-1) if return_aux.max_scores else None
    )
