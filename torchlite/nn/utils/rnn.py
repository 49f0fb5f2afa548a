"""Packed and padded batches of sequences of different lengths, and conversions between them."""

from __future__ import annotations

from collections import namedtuple
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir

if TYPE_CHECKING:
    from torchlite import Tensor


__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]

_FIELDS = ["data", "batch_sizes", "sorted_indices", "unsorted_indices"]
_Packed = namedtuple("PackedSequence", _FIELDS)  # type: ignore[name-match, misc]


class PackedSequence(_Packed):
    """A batch of sequences of different lengths, without padding, in time-major order.

    Recurrent layers accept it. `pack_padded_sequence` and `pack_sequence` create it; it is a named tuple.

    Args:
        data: Elements of all sequences: those at time 0 of each sequence, then those at time 1, and so on. Shape
            ``(sum of the lengths, *)``.
        batch_sizes: Number of sequences at each time; int64 on the CPU.
        sorted_indices: The permutation that sorted the sequences by descending length, or ``None``. Default: ``None``.
        unsorted_indices: Its inverse, or ``None``. Default: the inverse of ``sorted_indices``.

    Raises:
        ValueError: ``batch_sizes`` is not on the CPU.

    Example:
        >>> from torchlite.nn.utils.rnn import pack_sequence
        >>> packed = pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])])
        >>> packed.data, packed.batch_sizes
        (tensor([1, 4, 2, 5, 3]), tensor([2, 2, 1]))

    See also:
        `pack_sequence`, `pad_packed_sequence`.
    """

    __slots__ = ()
    if TYPE_CHECKING:
        data: Tensor
        batch_sizes: Tensor
        sorted_indices: Tensor | None
        unsorted_indices: Tensor | None

    def __new__(cls, data, batch_sizes=None, sorted_indices=None, unsorted_indices=None):
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("PackedSequence expected a (data, batch_sizes) pair")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequences in "
                "nn.utils.rnn. https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)  # type: ignore[call-arg]

    def to(self, *args: Any, **kwargs: Any) -> Any:
        """Converts the data to another dtype or device; the batch sizes stay on the CPU.

        Args:
            args: Positional arguments of `torch.Tensor.to`.
            kwargs: Keyword arguments of `torch.Tensor.to`.

        Returns:
            This object if nothing changes, else a new one.
        """
        return _map_fields(self, lambda data: data.to(*args, **kwargs))

    def cuda(self, *args: Any, **kwargs: Any) -> Any:
        """Copies the data to a CUDA device.

        Args:
            args: Positional arguments of `torch.Tensor.cuda`.
            kwargs: Keyword arguments of `torch.Tensor.cuda`.

        Returns:
            This object if the data is there already, else a new one.
        """
        return _map_fields(self, lambda data: data.cuda(*args, **kwargs))

    def cpu(self, *args: Any, **kwargs: Any) -> Any:
        """Copies the data to the CPU.

        Args:
            args: Positional arguments of `torch.Tensor.to`.
            kwargs: Keyword arguments of `torch.Tensor.to`.

        Returns:
            This object if the data is there already, else a new one.
        """
        return self.to(*args, device="cpu", **kwargs)

    def pin_memory(self) -> Any:
        """Copies the data to page-locked memory."""
        return _map_fields(self, lambda data: data.pin_memory())

    def double(self) -> Any:
        """Casts the data to float64."""
        return self.to(dtype=torch.double)

    def float(self) -> Any:
        """Casts the data to float32."""
        return self.to(dtype=torch.float)

    def half(self) -> Any:
        """Casts the data to float16."""
        return self.to(dtype=torch.half)

    def long(self) -> Any:
        """Casts the data to int64."""
        return self.to(dtype=torch.long)

    def int(self) -> Any:
        """Casts the data to int32."""
        return self.to(dtype=torch.int)

    def short(self) -> Any:
        """Casts the data to int16."""
        return self.to(dtype=torch.short)

    def char(self) -> Any:
        """Casts the data to int8."""
        return self.to(dtype=torch.int8)

    def byte(self) -> Any:
        """Casts the data to uint8."""
        return self.to(dtype=torch.uint8)

    @property
    def is_cuda(self) -> Any:
        """Whether the data is on a CUDA device."""
        return self.data.is_cuda

    def is_pinned(self) -> Any:
        """Returns whether the data is in page-locked memory."""
        return self.data.is_pinned()


def _map_fields(packed, convert):
    moved = convert(packed.data)
    if moved is packed.data:
        return packed
    indices = [
        None if index is None else index.to(moved.device) for index in (packed.sorted_indices, packed.unsorted_indices)
    ]
    return type(packed)(moved, packed.batch_sizes, *indices)


def invert_permutation(permutation: Any) -> Any:
    """Returns the permutation that undoes another.

    Args:
        permutation: A vector of the indices 0 to n - 1 in any order, or ``None``.

    Returns:
        The inverse; ``None`` for ``None``.

    Example:
        >>> torch.nn.utils.rnn.invert_permutation(torch.tensor([2, 0, 1]))
        tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    output = torch.empty_like(permutation)
    output[permutation] = torch.arange(0, permutation.numel(), device=permutation.device, dtype=permutation.dtype)
    return output


def _batch_sizes(lengths):
    """Return the number of sequences that reach each time step; `lengths` is a descending list."""
    sizes, alive = [], len(lengths)
    for step in range(lengths[0]):
        while lengths[alive - 1] <= step:
            alive -= 1
        sizes.append(alive)
    return sizes


def pack_padded_sequence(input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True) -> Any:
    """Packs padded sequences: leaves the padding out. Gradients flow through the result.

    Args:
        input: The padded sequences, shape ``(T, B, *)``, or ``(B, T, *)`` with ``batch_first``.
        lengths: The lengths of the sequences, a list or a vector on the CPU; each at least 1.
        batch_first: Whether the first dimension of ``input`` is the batch. Default: ``False``.
        enforce_sorted: Whether the lengths must descend. ``False`` sorts the sequences, and the result stores the
            permutation. Default: ``True``.

    Returns:
        A `PackedSequence`.

    Raises:
        RuntimeError: ``input`` is empty; or the lengths have a wrong number, value or order, or are not on the CPU.

    Example:
        >>> from torchlite.nn.utils.rnn import pack_padded_sequence
        >>> packed = pack_padded_sequence(torch.tensor([[1, 2, 0], [3, 0, 0]]), [2, 1], batch_first=True)
        >>> packed.data, packed.batch_sizes
        (tensor([1, 3, 2]), tensor([2, 1]))

    See also:
        `pad_packed_sequence`.
    """
    if not isinstance(lengths, torch.Tensor):
        lengths = torch.as_tensor(lengths, dtype=torch.int64, device="cpu")
    if lengths.device.type != "cpu":
        raise RuntimeError(
            "'lengths' argument should be a 1D CPU int64 tensor, but got 1D cuda:0 Long tensor".replace(
                "cuda:0", str(lengths.device)
            )
        )
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = torch.sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if batch_first:
        input = input.transpose(0, 1)
    if input.numel() == 0:
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths.ndim != 1:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.ndim}D cpu "
            f"{lengths.dtype.scalar_name} tensor"
        )
    steps = [int(length) for length in lengths.tolist()]
    if len(steps) != input.size(1):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(steps)} (batch_size={input.size(1)})"
        )
    if steps[-1] <= 0 and (enforce_sorted is False or all(a >= b for a, b in pairwise(steps))):
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(a < b for a, b in pairwise(steps)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if steps[0] > input.size(0):
        raise RuntimeError(
            f"Expected sequence length to be larger than or equal to lengths[0], but got {input.size(0)} and {steps[0]}"
        )
    sizes = _batch_sizes(steps)
    data = torch.cat([input[step, :size] for step, size in enumerate(sizes)])
    return PackedSequence(data, torch.tensor(sizes, dtype=torch.int64), sorted_indices)


def pad_packed_sequence(
    sequence: Any, batch_first: bool = False, padding_value: float = 0.0, total_length: Any = None
) -> Any:
    """Pads packed sequences to one length: the inverse of `pack_padded_sequence`.

    Args:
        sequence: A `PackedSequence`.
        batch_first: Whether the first dimension of the result is the batch. Default: ``False``.
        padding_value: The value of the padding. Default: 0.
        total_length: The length T of the result; at least that of the longest sequence. Default: that length.

    Returns:
        A tuple of the padded sequences, shape ``(T, B, *)`` or ``(B, T, *)``, and their lengths, int64 on the CPU. Both
        are in the order before packing.

    Raises:
        ValueError: ``total_length`` is too small.

    Example:
        >>> from torchlite.nn.utils.rnn import pack_sequence, pad_packed_sequence
        >>> packed = pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])])
        >>> pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2, 3],
                [4, 5, 0]]), tensor([3, 2]))

    See also:
        `unpack_sequence`.
    """
    sizes = sequence.batch_sizes.tolist()
    length = len(sizes)
    if total_length is not None:
        if total_length < length:
            raise ValueError(
                "Expected total_length to be at least the length of the longest sequence in input, but got "
                f"total_length={total_length} and max sequence length being {length}"
            )
        length = total_length
    data, batch = sequence.data, sizes[0]
    rows, start = [], 0
    for size in sizes:
        part = data[start : start + size]
        if size < batch:
            part = torch.cat([part, part.new_full((batch - size, *part.shape[1:]), padding_value)])
        rows.append(part)
        start += size
    rows += [data.new_full((batch, *data.shape[1:]), padding_value)] * (length - len(sizes))
    padded = torch.stack(rows, 1 if batch_first else 0)
    lengths = torch.tensor([sum(1 for size in sizes if size > place) for place in range(batch)], dtype=torch.int64)
    if sequence.unsorted_indices is not None:
        padded = padded.index_select(0 if batch_first else 1, sequence.unsorted_indices)
        lengths = lengths[sequence.unsorted_indices.cpu()]
    return padded, lengths


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """Pads sequences of different lengths to the longest and stacks them.

    Args:
        sequences: A list of tensors of shape ``(L_i, *)``; or a tensor, whose rows are the sequences.
        batch_first: Whether the result is ``(B, T, *)`` instead of ``(T, B, *)``. Default: ``False``.
        padding_value: The value of the padding. Default: 0.
        padding_side: ``"right"`` or ``"left"``. Default: ``"right"``.

    Returns:
        The padded sequences; T is the greatest length.

    Raises:
        RuntimeError: ``sequences`` is empty or not iterable, or ``padding_side`` is unknown.

    Example:
        >>> from torchlite.nn.utils.rnn import pad_sequence
        >>> pad_sequence([torch.tensor([1, 2]), torch.tensor([3])], batch_first=True)
        tensor([[1, 2],
                [3, 0]])

    See also:
        `unpad_sequence`, `pack_padded_sequence`.
    """
    if isinstance(sequences, torch.Tensor):
        sequences = sequences.unbind(0)
    elif not hasattr(sequences, "__iter__"):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    longest = max(sequence.size(0) for sequence in sequences)
    rows = []
    for sequence in sequences:
        missing = longest - sequence.size(0)
        if missing:
            filler = sequence.new_full((missing, *sequence.shape[1:]), padding_value)
            sequence = torch.cat([sequence, filler] if padding_side == "right" else [filler, sequence])
        rows.append(sequence)
    return torch.stack(rows, 0 if batch_first else 1)


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> Any:
    """Splits padded sequences into tensors of their lengths: the inverse of `pad_sequence`.

    Args:
        padded_sequences: The padded sequences, shape ``(T, B, *)``, or ``(B, T, *)`` with ``batch_first``, padded on
            the right.
        lengths: The lengths of the sequences.
        batch_first: Whether the first dimension is the batch. Default: ``False``.

    Returns:
        A list of tensors of shape ``(L_i, *)``, which own their memory.

    Example:
        >>> from torchlite.nn.utils.rnn import unpad_sequence
        >>> unpad_sequence(torch.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
        [tensor([1, 2]), tensor([3])]
    """
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    return [
        sequence[: int(length)].clone(memory_format=torch.contiguous_format)
        for sequence, length in zip(padded_sequences, lengths, strict=True)
    ]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> Any:
    """Packs a list of sequences of different lengths.

    Args:
        sequences: A list of tensors of shape ``(L_i, *)``, each with a length of at least 1.
        enforce_sorted: Whether the lengths must descend. ``False`` sorts the sequences, and the result stores the
            permutation. Default: ``True``.

    Returns:
        A `PackedSequence`.

    Raises:
        RuntimeError: There is no sequence, one is empty, or the lengths do not descend.

    Example:
        >>> from torchlite.nn.utils.rnn import pack_sequence
        >>> pack_sequence([torch.tensor([4, 5]), torch.tensor([1, 2, 3])], enforce_sorted=False).data
        tensor([1, 4, 2, 5, 3])

    See also:
        `unpack_sequence`.
    """
    lengths = torch.as_tensor([sequence.size(0) for sequence in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: Any) -> Any:
    """Splits packed sequences into a list of tensors: the inverse of `pack_sequence`.

    Args:
        packed_sequences: A `PackedSequence`.

    Returns:
        A list of tensors of shape ``(L_i, *)``, in the order before packing.

    Example:
        >>> from torchlite.nn.utils.rnn import pack_sequence, unpack_sequence
        >>> unpack_sequence(pack_sequence([torch.tensor([1, 2, 3]), torch.tensor([4, 5])]))
        [tensor([1, 2, 3]), tensor([4, 5])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


__dir__ = make_module_dir(globals())
