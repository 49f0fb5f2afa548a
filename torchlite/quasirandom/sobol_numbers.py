"""Direction numbers of Sobol' sequences (Joe and Kuo, 2008), from `joe_kuo_6.bin`, which tools/pack_sobol_numbers.py
writes and describes."""

from __future__ import annotations

from pathlib import Path

import numpy as np

MAX_BIT = 30
# How many primitive polynomials of degree 1, 2 ... 18 there are over the field of two elements.
POLYNOMIALS = (1, 1, 2, 2, 6, 6, 18, 16, 48, 60, 176, 144, 630, 756, 1800, 2048, 7710, 7776)
MAX_DIM = 1 + sum(POLYNOMIALS)


def direction_numbers(dimension: int) -> np.ndarray:
    """An int64 array of shape (dimension, 30): bit j of a point's number stands for the number in column j."""
    numbers = np.ones((dimension, MAX_BIT), np.int64)
    first = 1
    with Path(__file__).with_name("joe_kuo_6.bin").open("rb") as file:
        packed = _BitReader(file)
        for degree, count in enumerate(POLYNOMIALS, 1):
            last = min(first + count, dimension)
            if first >= last:
                break
            _fill_direction_numbers(
                numbers[first:last], degree, packed.take(last - first, degree * (degree + 1) // 2 - 1)
            )
            first = last
    return numbers << np.arange(MAX_BIT - 1, -1, -1)


class _BitReader:
    """Bits read one after the other, from a file whose last byte may be shared by two readings."""

    def __init__(self, file):
        self.file = file
        self.unread_bits = np.empty(0, np.uint8)

    def take(self, rows: int, width: int) -> np.ndarray:
        wanted = rows * width
        more = np.frombuffer(self.file.read(-(-(wanted - self.unread_bits.size) // 8)), np.uint8)
        bits = np.concatenate((self.unread_bits, np.unpackbits(more)))
        self.unread_bits = bits[wanted:]
        return bits[:wanted].reshape(rows, width)


def _fill_direction_numbers(numbers: np.ndarray, degree: int, bits: np.ndarray) -> None:
    """The numbers m_i of dimensions whose polynomials have one degree: the first ones are given, the others follow by
    the polynomial's recurrence."""
    inner, place = bits[:, : degree - 1].astype(np.int64), degree - 1
    for i in range(1, degree):
        numbers[:, i] = 1 + (bits[:, place : place + i].astype(np.int64) << np.arange(i, 0, -1)).sum(1)
        place += i
    for i in range(degree, MAX_BIT):
        number = numbers[:, i - degree] ^ numbers[:, i - degree] << degree
        for k in range(1, degree):
            number ^= inner[:, k - 1] * numbers[:, i - k] << k
        numbers[:, i] = number
