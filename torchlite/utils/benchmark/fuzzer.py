"""Random inputs for benchmarks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import torchlite as torch

__all__ = ["FuzzedParameter", "FuzzedSparseTensor", "FuzzedTensor", "Fuzzer", "ParameterAlias"]


class ParameterAlias:
    """In a distribution of values: the value of another parameter.

    Args:
        alias_to: Name of the other parameter.

    Example:
        >>> torch.utils.benchmark.ParameterAlias("n")
        ParameterAlias[alias_to: n]
    """

    def __init__(self, alias_to: str) -> None:
        self.alias_to = alias_to

    def __repr__(self) -> str:
        return f"ParameterAlias[alias_to: {self.alias_to}]"


class FuzzedParameter:
    """A random number.

    Args:
        name: Name of the parameter.
        minval: Smallest value.
        maxval: Largest value.
        distribution: ``"uniform"``, ``"loguniform"``, or a dict from values to their probabilities, without ``minval``
            and ``maxval``.
        strict: Whether values outside the limits, which an alias can bring, are drawn again. Default: ``False``.

    Raises:
        ValueError: The distribution is missing or unknown, its probabilities do not sum to 1, or its limits are
            missing.

    Example:
        >>> import numpy as np
        >>> parameter = torch.utils.benchmark.FuzzedParameter("n", minval=2, maxval=8, distribution="uniform")
        >>> 2 <= parameter.sample(np.random.RandomState(0)) <= 8
        True
    """

    def __init__(
        self, name: str, minval: Any = None, maxval: Any = None, distribution: Any = None, strict: bool = False
    ) -> None:
        self._name, self._minval, self._maxval, self.strict = name, minval, maxval, strict
        if distribution is None:
            raise ValueError("`distribution` must be specified.")
        if isinstance(distribution, str) and distribution not in ("uniform", "loguniform"):
            raise ValueError(f"Unknown distribution: {distribution}")
        if isinstance(distribution, dict):
            if minval is not None or maxval is not None:
                raise ValueError("a distribution of given values has no minval and maxval")
            if abs(sum(distribution.values()) - 1) > 1e-6:
                raise ValueError("probabilities do not sum to 1")
        elif minval is None or maxval is None:
            raise ValueError("`minval` and `maxval` must be specified")
        self._distribution = distribution

    @property
    def name(self) -> str:
        """Name of the parameter."""
        return self._name

    def sample(self, state: Any) -> Any:
        """Draws a value.

        Args:
            state: A ``numpy.random.RandomState``.
        """
        if isinstance(self._distribution, dict):
            values = list(self._distribution)
            return values[state.choice(len(values), p=list(self._distribution.values()))]
        whole = isinstance(self._minval, int) and isinstance(self._maxval, int)
        if self._distribution == "uniform":
            return (
                int(state.randint(self._minval, self._maxval + 1))
                if whole
                else state.uniform(self._minval, self._maxval)
            )
        value = 2 ** state.uniform(math.log2(self._minval), math.log2(self._maxval))
        return round(value) if whole else value


class FuzzedTensor:
    """A random tensor whose sizes refer to parameters.

    Args:
        name: Name of the tensor.
        size: Tuple of sizes: ints and names of parameters.
        steps: Tuple of steps between elements of each dimension, likewise. Default: 1.
        probability_contiguous: Probability that the tensor is contiguous; otherwise its dimensions are permuted.
            Default: 0.5.
        min_elements: Smallest number of elements. Default: no limit.
        max_elements: Largest number of elements. Default: no limit.
        max_allocation_bytes: Largest number of bytes. Default: no limit.
        dim_parameter: Name of the parameter with the number of dimensions. Default: all sizes are used.
        roll_parameter: Only ``None`` is supported.
        dtype: Dtype of the tensor. Default: float32.
        cuda: Whether the tensor is moved to CUDA. Default: ``False``.
        tensor_constructor: Function ``(size, dtype, **parameters)`` that makes the tensor. Default: random numbers.

    Raises:
        NotImplementedError: ``roll_parameter`` is given.

    Example:
        >>> from torchlite.utils import benchmark
        >>> fuzzer = benchmark.Fuzzer([], [benchmark.FuzzedTensor("x", size=(2, 3))], seed=0)
        >>> [tensors["x"].shape for tensors, _, _ in fuzzer.take(1)]
        [torch.Size([2, 3])]
    """

    def __init__(
        self, name: str, size: tuple, steps: tuple | None = None, probability_contiguous: float = 0.5,
        min_elements: int | None = None, max_elements: int | None = None, max_allocation_bytes: int | None = None,
        dim_parameter: str | None = None, roll_parameter: str | None = None, dtype: Any = torch.float32,
        cuda: bool = False, tensor_constructor: Callable | None = None,
    ) -> None:  # fmt: skip
        if roll_parameter is not None:
            raise NotImplementedError("FuzzedTensor(): roll_parameter")
        self._name, self._size, self._steps = name, size, steps
        self._contiguous, self._least, self._most = probability_contiguous, min_elements, max_elements
        self._bytes, self._dim, self._dtype = max_allocation_bytes, dim_parameter, dtype or torch.float32
        self._cuda, self._constructor = cuda, tensor_constructor

    @property
    def name(self) -> str:
        """Name of the tensor."""
        return self._name

    def _make_tensor(self, params: dict, state: Any) -> tuple[Any, dict]:
        dims = params[self._dim] if self._dim else len(self._size)
        size = tuple(params[s] if isinstance(s, str) else s for s in self._size[:dims])
        steps = tuple(params[s] if isinstance(s, str) else s for s in (self._steps or (1,) * dims)[:dims])
        allocated = tuple(n * step for n, step in zip(size, steps, strict=True))
        order = list(range(len(size)))
        contiguous = state.uniform() < self._contiguous
        if not contiguous:
            state.shuffle(order)
        place = [allocated[d] for d in order]
        if self._constructor is not None:
            raw = self._constructor(size=place, dtype=self._dtype, **params)
        elif self._dtype.is_floating_point:
            raw = torch.rand(place, dtype=self._dtype)
        else:
            raw = torch.randint(1, 127, place, dtype=self._dtype)
        if self._cuda:
            raw = raw.cuda()
        tensor = raw.permute(tuple(np.argsort(order))) if order else raw
        tensor = tensor[tuple(slice(0, n * step, step) for n, step in zip(size, steps, strict=True))]
        return tensor, {
            "numel": math.prod(size), "order": np.array(order), "steps": steps, "is_contiguous": tensor.is_contiguous(),
            "dtype": str(self._dtype),
        }  # fmt: skip

    def fits(self, params: dict) -> bool:
        """Returns whether the size is within the limits.

        Args:
            params: Values of the parameters by name.
        """
        dims = params[self._dim] if self._dim else len(self._size)
        count = math.prod(params[s] if isinstance(s, str) else s for s in self._size[:dims])
        if self._bytes is not None and count * self._dtype.itemsize > self._bytes:
            return False
        return (self._least is None or count >= self._least) and (self._most is None or count <= self._most)


class FuzzedSparseTensor(FuzzedTensor):
    """A random sparse COO tensor whose sizes refer to parameters.

    Args:
        name: Name of the tensor.
        size: Tuple of sizes: ints and names of parameters.
        min_elements: Smallest number of elements. Default: no limit.
        max_elements: Largest number of elements. Default: no limit.
        dim_parameter: Name of the parameter with the number of dimensions. Default: all sizes are used.
        sparse_dim: Name of the parameter with the number of sparse dimensions. Default: all are sparse.
        nnz: Name of the parameter with the number of specified elements. Default: made from the density.
        density: Name of the parameter with the share of specified elements. Default: 0.1.
        coalesced: Name of the parameter that says whether indices are unique and sorted. Default: they may repeat.
        dtype: Dtype of the values. Default: float32.
        cuda: No effect.

    Example:
        >>> from torchlite.utils import benchmark
        >>> fuzzer = benchmark.Fuzzer([], [benchmark.FuzzedSparseTensor("x", size=(10, 10))], seed=0)
        >>> [tensors["x"].layout for tensors, _, _ in fuzzer.take(1)]
        [torch.sparse_coo]
    """

    def __init__(
        self, name: str, size: tuple, min_elements: int | None = None, max_elements: int | None = None,
        dim_parameter: str | None = None, sparse_dim: str | None = None, nnz: str | None = None,
        density: str | None = None, coalesced: str | None = None, dtype: Any = torch.float32, cuda: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(name, size, None, 1.0, min_elements, max_elements, None, dim_parameter, None, dtype, cuda)
        self._density, self._nnz, self._coalesced, self._sparse_dim = density, nnz, coalesced, sparse_dim

    def _make_tensor(self, params: dict, state: Any) -> tuple[Any, dict]:
        dims = params[self._dim] if self._dim else len(self._size)
        size = tuple(params[s] if isinstance(s, str) else s for s in self._size[:dims])
        sparse = params[self._sparse_dim] if self._sparse_dim else dims
        density = params[self._density] if self._density else 0.1
        count = params[self._nnz] if self._nnz else max(1, int(math.prod(size[:sparse]) * density))
        indices = torch.tensor(np.stack([state.randint(0, n, count) for n in size[:sparse]]))
        tensor = torch.sparse_coo_tensor(indices, torch.rand((count, *size[sparse:]), dtype=self._dtype), size)
        if self._coalesced and params[self._coalesced]:
            tensor = tensor.coalesce()
        return tensor, {
            "numel": math.prod(size), "shape": size, "is_coalesced": tensor.is_coalesced(), "density": density,
            "sparsity": 1 - density, "sparse_dim": sparse, "dense_dim": dims - sparse, "dtype": str(self._dtype),
        }  # fmt: skip


class Fuzzer:
    """Draws parameters and tensors for benchmarks.

    Args:
        parameters: List of `FuzzedParameter`, possibly nested.
        tensors: List of `FuzzedTensor`, possibly nested.
        constraints: Functions of the parameters that return whether a draw is used. Default: none.
        seed: Seed of the draws. Default: a random one.

    Raises:
        ValueError: Two have one name.

    Example:
        >>> from torchlite.utils import benchmark
        >>> fuzzer = benchmark.Fuzzer(
        ...     parameters=[benchmark.FuzzedParameter("n", minval=2, maxval=8, distribution="uniform")],
        ...     tensors=[benchmark.FuzzedTensor("x", size=("n", 3))], seed=0)
        >>> for tensors, described, parameters in fuzzer.take(2):
        ...     assert tensors["x"].shape == (parameters["n"], 3)
    """

    def __init__(
        self, parameters: list, tensors: list, constraints: list[Callable] | None = None, seed: int | None = None
    ) -> None:
        def flat(items: list) -> list:
            return [p for item in items for p in (item if isinstance(item, (list, tuple)) else (item,))]

        self._parameters, self._tensors = flat(parameters), flat(tensors)
        self._constraints = constraints or []
        names = [x.name for x in (*self._parameters, *self._tensors)]
        twice = {name for name in names if names.count(name) > 1}
        if twice:
            raise ValueError(f"Duplicate names in parameters and tensors: {twice}")
        self._seed = int(np.random.RandomState().randint(0, 2**32 - 1, dtype=np.int64)) if seed is None else seed
        self._rejections = self._drawn = 0

    @property
    def rejection_rate(self) -> float:
        """The share of draws that broke a limit."""
        return self._rejections / self._drawn if self._drawn else 0.0

    def take(self, n: int) -> Iterator[tuple[dict, dict, dict]]:
        """Draws parameters and tensors.

        Args:
            n: Number of draws.

        Yields:
            Tensors by name, their properties by name, and parameters by name.

        Raises:
            ValueError: The limits reject nearly all draws.
        """
        state = np.random.RandomState(self._seed)
        torch.manual_seed(int(state.randint(0, 2**31 - 1)))
        for _ in range(n):
            params = self._draw_params(state)
            made = {tensor.name: tensor._make_tensor(params, state) for tensor in self._tensors}
            yield {name: t for name, (t, _) in made.items()}, {name: d for name, (_, d) in made.items()}, params

    def _draw_params(self, state: Any) -> dict:
        for _ in range(10_000):
            self._drawn += 1
            params = {p.name: p.sample(state) for p in self._parameters}
            params = {k: params[v.alias_to] if isinstance(v, ParameterAlias) else v for k, v in params.items()}
            for p in self._parameters:  # of several parameters with one name a strict one must be within its limits
                if p.strict and not p._minval <= params[p.name] <= p._maxval:
                    break
            else:
                if all(t.fits(params) for t in self._tensors) and all(c(params) for c in self._constraints):
                    return params
            self._rejections += 1
        raise ValueError("the limits of parameters and tensors leave next to nothing to draw")
