"""Quasi-random points: `torch.quasirandom.SobolEngine`."""

from __future__ import annotations

import torchlite as torch
from torchlite._settings.module_dir import make_module_dir

from .sobol_numbers import MAX_BIT, MAX_DIM, direction_numbers

__all__ = ["SobolEngine"]


class SobolEngine:
    """Draws the points of a Sobol' sequence, a quasi-random sequence that fills the unit cube evenly.

    Of each :math:`2^k` consecutive points, aligned to a multiple of :math:`2^k`, every dimension has one in each
    interval of length :math:`2^{-k}`. The direction numbers are those of Joe and Kuo. There are :math:`2^{30}` points.
    With scrambling, a random linear map and a random shift of the binary digits keep that evenness. The stream is
    PyTorch's.

    Args:
        dimension: Number of dimensions, from 1 to 21201.
        scramble: Whether to scramble the points. Default: ``False``.
        seed: Seed of the scrambling. Default: ``None``, the default generator is used.

    Raises:
        ValueError: ``dimension`` is out of its range.

    Example:
        >>> engine = torch.quasirandom.SobolEngine(2)
        >>> engine.draw(3)
        tensor([[0.0000, 0.0000],
                [0.5000, 0.5000],
                [0.7500, 0.2500]])
        >>> engine.draw()
        tensor([[0.2500, 0.7500]])

    References:
        S. Joe and F. Y. Kuo, "Constructing Sobol sequences with better two-dimensional projections", 2008.

        A. B. Owen, "Randomly permuted (t,m,s)-nets and (t,s)-sequences", 1995.
    """

    MAXBIT = MAX_BIT
    MAXDIM = MAX_DIM

    def __init__(self, dimension, scramble=False, seed=None):
        if dimension > self.MAXDIM or dimension < 1:
            raise ValueError(f"Supported range of dimensionality for SobolEngine is [1, {self.MAXDIM}]")
        self.seed = seed
        self.scramble = scramble
        self.dimension = dimension
        self.sobolstate = torch.from_numpy(direction_numbers(dimension))
        self.shift = torch.zeros(dimension, dtype=torch.int64, device="cpu")
        if scramble:
            self._scramble()
        self.quasi = self.shift.clone()
        self._first_point = (self.quasi / 2**MAX_BIT).reshape(1, -1)
        self.num_generated = 0

    def draw(self, n: int = 1, out: torch.Tensor | None = None, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Draw the next points.

        Args:
            n: Number of points. Default: 1.
            out: Tensor to write the points to; it is resized. Default: ``None``, a new tensor.
            dtype: ``torch.float32`` or ``torch.float64``. Default: ``None``, the default dtype.

        Returns:
            A tensor of shape ``(n, dimension)`` with numbers in :math:`[0, 1)`, or ``out``.

        Raises:
            RuntimeError: ``n`` is negative.
            NotImplementedError: ``dtype`` is another one.

        Example:
            >>> torch.quasirandom.SobolEngine(1).draw(4, dtype=torch.float64)
            tensor([[0.0000],
                    [0.5000],
                    [0.7500],
                    [0.2500]], dtype=torch.float64)
        """
        dtype = torch.get_default_dtype() if dtype is None else dtype
        if self.num_generated:
            points = self._draw_points(n, self.num_generated - 1, dtype)
        else:
            points = self._first_point.to(dtype)
            if n != 1:
                points = torch.cat((points, self._draw_points(n - 1, 0, dtype)))
        self.num_generated += n
        if out is None:
            return points
        out.resize_as_(points).copy_(points)
        return out

    def draw_base2(self, m: int, out: torch.Tensor | None = None, dtype: torch.dtype | None = None) -> torch.Tensor:
        """Draw the next :math:`2^m` points.

        Args:
            m: Logarithm to base 2 of the number of points.
            out: Tensor to write the points to; it is resized. Default: ``None``, a new tensor.
            dtype: ``torch.float32`` or ``torch.float64``. Default: ``None``, the default dtype.

        Returns:
            A tensor of shape ``(2**m, dimension)``, or ``out``.

        Raises:
            ValueError: The number of all points drawn would not be a power of two.

        Example:
            >>> torch.quasirandom.SobolEngine(3).draw_base2(4).shape
            torch.Size([16, 3])
        """
        n = 2**m
        total = self.num_generated + n
        if total & (total - 1):
            raise ValueError(
                f"The balance properties of Sobol' points require n to be a power of 2. {self.num_generated} points "
                f"have been previously generated, then: n={self.num_generated}+2**{m}={total}. If you still want to "
                "do this, please use 'SobolEngine.draw()' instead."
            )
        return self.draw(n=n, out=out, dtype=dtype)

    def reset(self) -> SobolEngine:
        """Go back to the first point.

        Returns:
            The engine.
        """
        self.quasi.copy_(self.shift)
        self.num_generated = 0
        return self

    def fast_forward(self, n: int) -> SobolEngine:
        """Skip points.

        Args:
            n: Number of points to skip.

        Returns:
            The engine.

        Example:
            >>> torch.quasirandom.SobolEngine(1).fast_forward(2).draw()
            tensor([[0.7500]])
        """
        last = self.num_generated - 1 if self.num_generated else 0
        steps = n if self.num_generated else n - 1
        if steps > 0:
            self.quasi = self._digits_of_points(torch.tensor([last + steps], device="cpu"), last)[0]
        self.num_generated += n
        return self

    def _draw_points(self, n: int, last: int, dtype: torch.dtype) -> torch.Tensor:
        """The ``n`` points behind point ``last``, whose digits are in ``quasi``."""
        if n < 0:
            shape = [n, self.dimension]
            raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {shape}")
        if dtype not in (torch.float32, torch.float64):
            names = {torch.float16: "Half", torch.bfloat16: "BFloat16", torch.int64: "Long", torch.bool: "Bool"}
            raise NotImplementedError(f"\"_sobol_engine_draw\" not implemented for '{names.get(dtype, dtype)}'")
        # Digits are added without carry, so blocks of points differ from the first block by one number each.
        width = n.bit_length() // 2
        first, end = last + 1, last + n
        blocks = self._digits_of_points(torch.arange(first >> width, (end >> width) + 1, device="cpu") << width, last)
        within = self._digits_of_points(torch.arange(1 << width, device="cpu"), 0) ^ self.quasi
        numbers = (blocks.unsqueeze(1) ^ within).reshape(-1, self.dimension)
        numbers = numbers.narrow(0, first - (first >> width << width), n)
        if n:
            self.quasi = numbers[-1].clone()
        return numbers.to(dtype) * 2.0**-MAX_BIT

    def _digits_of_points(self, index: torch.Tensor, last: int) -> torch.Tensor:
        """The digits of points, given by ascending numbers: between two points of the sequence those direction numbers
        are added (without carry) that stand for the bits in which the Gray codes of the points differ."""
        bits = int(index[-1]).bit_length() if index.numel() else 0
        if bits > MAX_BIT:
            raise RuntimeError(f"SobolEngine: the sequence has 2**{MAX_BIT} points")
        differs = index ^ index >> 1 ^ (last ^ last >> 1)
        numbers = self.quasi.expand(len(index), -1)
        for bit in range(bits):
            numbers = numbers ^ (differs >> bit & 1).unsqueeze(1) * self.sobolstate[:, bit]
        return numbers

    def _scramble(self) -> None:
        """Draws the shift and, for each dimension, a lower triangular matrix over the field of two elements, with ones
        on its diagonal, which maps the digits of every direction number."""
        generator = None if self.seed is None else torch.Generator().manual_seed(self.seed)
        digits = torch.arange(MAX_BIT, device="cpu")
        shape = (self.dimension, MAX_BIT)
        drawn = torch.randint(2, shape, device="cpu", generator=generator)
        self.shift = (drawn << digits).sum(1)
        matrix = torch.randint(2, (*shape, MAX_BIT), device="cpu", generator=generator)
        matrix = matrix.tril_(-1).to(torch.float32) + torch.eye(MAX_BIT, dtype=torch.float32, device="cpu")
        descending = digits.flip(0)
        state = (self.sobolstate.unsqueeze(1) >> descending.unsqueeze(1) & 1).to(torch.float32)
        mixed = torch.matmul(matrix, state).to(torch.int64) & 1
        self.sobolstate = (mixed << descending.unsqueeze(1)).sum(1)

    def __repr__(self) -> str:
        told = [f"dimension={self.dimension}"]
        if self.scramble:
            told.append("scramble=True")
        if self.seed is not None:
            told.append(f"seed={self.seed}")
        return f"{self.__class__.__name__}({', '.join(told)})"


__dir__ = make_module_dir(globals())
