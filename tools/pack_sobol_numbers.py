"""Writes torchlite/quasirandom/joe_kuo_6.bin out of `new-joe-kuo-6.21201`, the list of Sobol' direction numbers that
Stephen Joe and Frances Kuo publish (https://web.maths.unsw.edu.au/~fkuo/sobol/, BSD licence; "Constructing Sobol
sequences with better two-dimensional projections", SIAM J. Sci. Comput. 30, 2008):

    python tools/pack_sobol_numbers.py new-joe-kuo-6.21201

A line of the list is "d s a m_1 ... m_s": a dimension, the degree of its primitive polynomial, the polynomial's inner
coefficients as bits of a, and odd numbers m_i < 2**i. The file has the dimensions from the second on, one after the
other without gaps: s - 1 bits of a, then of each m_i the i - 1 bits above the lowest, most significant first. Degrees
are not written: there are phi(2**s - 1) / s primitive polynomials of degree s, and the list has all up to degree 18.
"""

import sys
from pathlib import Path

import numpy as np

TARGET = Path(__file__).parents[1] / "torchlite" / "quasirandom" / "joe_kuo_6.bin"


def bits(line: str) -> str:
    """One line's bits, without its first and third number."""
    _, degree, inner, *numbers = map(int, line.split())
    assert len(numbers) == degree, line
    fields = [(inner, degree - 1), *((number >> 1, place) for place, number in enumerate(numbers))]
    return "".join(f"{value:0{width}b}" for value, width in fields if width)


def main(path: str) -> None:
    lines = Path(path).read_text().splitlines()[1:]
    text = "".join(map(bits, lines))
    TARGET.write_bytes(np.packbits(np.frombuffer(text.encode(), np.uint8) - ord("0")).tobytes())
    print(f"{len(lines) + 1} dimensions, {TARGET.stat().st_size} bytes in {TARGET}")


if __name__ == "__main__":
    main(sys.argv[1])
