"""What has a scale of its own: a tensor, a channel, a group."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Any


class MappingType(Enum):
    """How levels follow from a range.

    Example:
        >>> torch.ao.quantization.MappingType.SYMMETRIC
        <MappingType.SYMMETRIC: 1>
    """

    SYMMETRIC = auto()
    SYMMETRIC_NO_CLIPPING_ERR = auto()
    ASYMMETRIC = auto()


class ZeroPointDomain(Enum):
    """Whether a zero point is an integer.

    Example:
        >>> torch.ao.quantization.ZeroPointDomain.INT
        <ZeroPointDomain.INT: 1>
    """

    INT = auto()
    FLOAT = auto()
    NONE = auto()


class TorchAODType(Enum):
    """Integers of fewer than eight bits.

    Example:
        >>> torch.ao.quantization.TorchAODType.INT4
        <TorchAODType.INT4: 4>
    """

    INT1 = auto()
    INT2 = auto()
    INT3 = auto()
    INT4 = auto()
    INT5 = auto()
    INT6 = auto()
    INT7 = auto()


@dataclass(frozen=True)
class Granularity:
    """The base class of descriptions of what has a scale.

    Example:
        >>> isinstance(torch.ao.quantization.PerTensor(), torch.ao.quantization.Granularity)
        True
    """


@dataclass(frozen=True)
class PerBlock(Granularity):
    """A scale for each block.

    Args:
        block_size: The size of a block.

    Example:
        >>> torch.ao.quantization.PerBlock((1, 4))
        PerBlock(block_size=(1, 4))
    """

    block_size: tuple[int, ...]


@dataclass(frozen=True)
class PerTensor(Granularity):
    """One scale for a tensor.

    Example:
        >>> torch.ao.quantization.PerTensor()
        PerTensor()
    """


@dataclass(frozen=True)
class PerAxis(Granularity):
    """A scale for each index of a dimension.

    Args:
        axis: The dimension.

    Example:
        >>> torch.ao.quantization.PerAxis(0)
        PerAxis(axis=0)
    """

    axis: int


@dataclass(frozen=True)
class PerGroup(Granularity):
    """A scale for each group of elements within a row.

    Args:
        group_size: The size of a group.

    Example:
        >>> torch.ao.quantization.PerGroup(32)
        PerGroup(group_size=32)
    """

    group_size: int


class PerRow(Granularity):
    """A scale for each row.

    Example:
        >>> torch.ao.quantization.get_block_size((2, 3), torch.ao.quantization.PerRow())
        (1, 3)
    """


class PerToken(Granularity):
    """A scale for each row, of inputs whose rows are tokens.

    Example:
        >>> torch.ao.quantization.get_block_size((2, 3), torch.ao.quantization.PerToken())
        (1, 3)
    """


def get_block_size(input_shape: tuple[int, ...], granularity: Granularity) -> tuple[int, ...]:
    """The size of the blocks that have a scale.

    Args:
        input_shape: The shape of the tensor.
        granularity: What has a scale.

    Raises:
        ValueError: The granularity has no blocks.

    Example:
        >>> torch.ao.quantization.get_block_size((2, 3), torch.ao.quantization.PerAxis(0))
        (1, 3)
    """
    if not isinstance(granularity, Granularity):
        raise AssertionError("Please provide an instance of Granularity, not subclass of it")
    if isinstance(granularity, PerTensor):
        return input_shape
    size: list[Any] = list(input_shape)
    if isinstance(granularity, PerAxis):
        size[granularity.axis] = 1
        return tuple(size)
    if isinstance(granularity, PerGroup):
        if len(input_shape) != 2:
            raise AssertionError(
                f"Expecting input shape dim to be 2 for per group quantization, gotinput shape: {input_shape}"
            )
        return (1, granularity.group_size)
    if isinstance(granularity, (PerRow, PerToken)):
        return (1,) * (len(size) - 1) + (input_shape[-1],)
    raise ValueError(f"Unsupported Granularity: {granularity}")
