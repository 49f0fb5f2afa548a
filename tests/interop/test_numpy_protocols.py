"""NumPy's public functions called on Tensors: each gives what it gives on arrays.

A call is text in which these names are arrays, or Tensors of the same values: `a`, `b` 2x3, `v`, `u` of four elements,
`i`, `j` integers 2x3, `k` sorted integers, `s` a symmetric matrix, `p` a positive vector, `z` complex, `f` bools.
"""

from __future__ import annotations

import inspect
import io

import numpy as np
import pytest

import torchlite as torch

ARRAYS = {
    "a": np.array([[0.5, -1.25, 2.0], [3.5, 0.25, -0.75]]),
    "b": np.array([[1.5, 2.5, 0.5], [-1.0, 4.0, 3.0]]),
    "v": np.array([3.0, -1.0, 2.0, 0.5]),
    "u": np.array([0.25, 1.5, -2.0, 4.0]),
    "i": np.array([[3, 1, 2], [0, 5, 4]]),
    "j": np.array([[2, 3, 1], [1, 2, 2]]),
    "k": np.array([1, 2, 2, 5]),
    "s": np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]]),
    "p": np.array([0.5, 1.5, 3.0, 0.25]),
    "z": np.array([1.0 + 2.0j, -0.5j, 3.0, 2.0 - 1.0j]),
    "f": np.array([[True, False, True], [False, False, True]]),
    "n": np.array([1.0, np.nan, 2.0, 0.5]),
    "e": np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 1e300, -3.5, 7.0]),
    "h": np.array([1, 200, 3], dtype=np.uint8),
    "r": np.array([1.5, 2.5, -0.5], dtype=np.float32),
}

FUNCTIONS = {
    "all": ["f", "f, axis=0", "a, 1, keepdims=True", "f, where=f"],
    "allclose": ["a, a", "a, b", "a, a + 1e-9, rtol=0.0"],
    "amax": ["a", "a, axis=(0, 1)"],
    "amin": ["a", "a, 1"],
    "angle": ["z", "z, deg=True", "a"],
    "any": ["f", "f, axis=1"],
    "append": ["v, u", "a, b, axis=0", "v, [1, 2]"],
    "apply_along_axis": ["np.sort, 0, a", "lambda x: x.sum(), 1, a"],
    "apply_over_axes": ["np.sum, a, [0, 1]"],
    "argmax": ["a", "a, 0", "a, axis=1, keepdims=True", "f"],
    "argmin": ["a", "i, 1"],
    "argpartition": ["v, 2"],
    "argsort": ["v", "a, axis=0", "a, None"],
    "argwhere": ["a > 0"],
    "around": ["a", "a, 1"],
    "array2string": ["i"],
    "array_equal": ["a, a", "a, b", "n, n, equal_nan=True"],
    "array_equiv": ["a, a", "a, a[0]"],
    "array_split": ["v, 3", "a, [1], 1"],
    "astype": ["a, np.float32", "a, np.int64"],
    "atleast_1d": ["v", "v[0]", "v[0], a"],
    "atleast_2d": ["v", "a"],
    "atleast_3d": ["v", "a", "v[0]"],
    "average": ["a", "a, 0", "v, weights=p", "a, 1, [1.0, 2.0, 3.0]", "v, returned=True, weights=p"],
    "bincount": ["k", "k, weights=v", "k, minlength=9"],
    "block": ["[v, u]", "[[a, b], [b, a]]"],
    "broadcast_arrays": ["v, a[:, :1]", "[1.0, 2.0, 3.0], a", "v, 2.0"],
    "broadcast_to": ["v, (2, 4)"],
    "choose": ["k[:2] - 1, [v[:2], u[:2]]"],
    "clip": ["a, 0, 1", "a, None, 1", "i, 1, 3", "a, a_min=b, a_max=2", "a, min=0", "i, 0.5, 2.5"],
    "column_stack": ["(v, u)"],
    "common_type": ["a, i"],
    "compress": ["[True, False, True], a, 1"],
    "concat": ["[a, b]"],
    "concatenate": ["[a, b], axis=1", "[a, i]", "[a, b], axis=None", "(v, [1.0]), dtype=np.float32", "[r, v]"],
    "convolve": ["v, u", "v, u, 'same'"],
    "copy": ["a"],
    "corrcoef": ["a", "v, u"],
    "correlate": ["v, u"],
    "count_nonzero": ["i", "i, 0", "i, axis=1, keepdims=True"],
    "cov": ["a", "v, u", "a, rowvar=False, ddof=0"],
    "cross": ["a, b", "a[0], b", "a.T, b.T, axis=0", "a, b, -1, -1, 0"],
    "cumprod": ["v", "a, 1", "a"],
    "cumsum": ["v", "a, 0", "a", "i", "h", "i, 1, np.float64"],
    "cumulative_prod": ["v", "a, axis=1, include_initial=True"],
    "cumulative_sum": ["v", "v, include_initial=True", "a, axis=0"],
    "delete": ["v, 1", "a, [0], axis=1"],
    "diag": ["v", "s", "v, 1"],
    "diag_indices_from": ["s"],
    "diagflat": ["a", "v, 1"],
    "diagonal": ["s", "a, 1"],
    "diff": ["v", "a, axis=0", "v, 2", "v, prepend=0.0"],
    "digitize": ["v, p[:2]", "v, np.array([0.0, 1.0])"],
    "dot": ["a, b.T", "v, u", "s, s", "v, 2.0", "v, i[0, 0]"],
    "dsplit": ["a.reshape(1, 2, 3), 3"],
    "dstack": ["(a, b)"],
    "ediff1d": ["v"],
    "einsum": ["'ij,kj->ik', a, b", "'i,i', v, k", "'ij->j', a"],
    "einsum_path": ["'ij,jk', a, s"],
    "empty_like": [],
    "expand_dims": ["a, 0", "a, (0, 3)", "a, axis=-1"],
    "extract": ["f, a"],
    "fix": ["a"],
    "flatnonzero": ["i"],
    "flip": ["a", "a, 0", "a, (0, 1)", "a, axis=-1"],
    "fliplr": ["a"],
    "flipud": ["a"],
    "full_like": ["a, 3", "i, 2.5", "a, 1, dtype=np.int64", "a, 4, shape=(5,)", "a, v[:3]"],
    "geomspace": ["p[0], p[2], 4"],
    "gradient": ["v", "a", "a, axis=0", "v, 2.0", "v, p"],
    "histogram": ["v", "v, 3, (0.0, 2.0)"],
    "histogram2d": ["v, u, 2"],
    "histogram_bin_edges": ["v, 4"],
    "histogramdd": ["a.T, 2"],
    "hsplit": ["a, 3", "v, 2"],
    "hstack": ["(a, b)", "[v, u]"],
    "i0": ["v"],
    "imag": ["z", "a"],
    "inner": ["v, u", "a, b", "a, 2.0"],
    "insert": ["v, 1, 9.0", "a, 0, 7.0, axis=1"],
    "interp": ["v, p[:2], u[:2]", "1.2, k, v"],
    "intersect1d": ["k, i"],
    "isclose": ["a, a", "a, b"],
    "iscomplex": ["z"],
    "iscomplexobj": ["z", "a"],
    "isin": ["i, [1, 2]", "i, k"],
    "isneginf": ["a"],
    "isposinf": ["a"],
    "isreal": ["z"],
    "isrealobj": ["a"],
    "ix_": ["k, k"],
    "kron": ["a, b", "v, i"],
    "lexsort": ["(v, u)"],
    "linspace": ["v[0], v[1], 5", "v, u, 3"],
    "logspace": ["v, u, 3"],
    "matrix_transpose": ["a"],
    "max": ["a", "a, 0", "a, axis=1, keepdims=True", "a, initial=9.0", "a, axis=0, initial=0, where=f"],
    "may_share_memory": ["a, a"],
    "mean": ["a", "i", "a, 0", "a, axis=(0, 1)", "a, 1, keepdims=True", "a, where=f", "r", "a, 0, np.float32"],
    "median": ["v", "a", "a, 0", "a, axis=1, keepdims=True", "i", "n"],
    "meshgrid": ["v, u", "v, u, indexing='ij'", "v, k, sparse=True", "v[:2], u[:2], p[:3]"],
    "min": ["a", "i, 0"],
    "min_scalar_type": ["k"],
    "moveaxis": ["a, 0, 1"],
    "nan_to_num": ["n", "n, nan=3.0"],
    "nanargmax": ["n"],
    "nanargmin": ["n"],
    "nancumprod": ["n"],
    "nancumsum": ["n"],
    "nanmax": ["n", "v"],
    "nanmean": ["n", "a, 0"],
    "nanmedian": ["n"],
    "nanmin": ["n", "a, 1"],
    "nanpercentile": ["n, 30"],
    "nanprod": ["n"],
    "nanquantile": ["n, 0.3"],
    "nanstd": ["n"],
    "nansum": ["n", "a, 0"],
    "nanvar": ["n"],
    "ndim": ["a"],
    "nonzero": ["a > 0", "i"],
    "ones_like": ["a", "a, dtype=np.int32", "a, shape=(4,)"],
    "outer": ["v, u", "a, v"],
    "packbits": ["f"],
    "pad": ["a, 1", "v, (1, 2)", "v, 2, 'reflect'", "v, 1, 'constant', constant_values=5.0", "a, ((0, 1), (2, 0))"],
    "partition": ["v, 2"],
    "percentile": ["v, 30", "a, [25, 75]", "a, 50, 0", "a, 10, axis=1, keepdims=True", "v, 30, method='lower'"],
    "permute_dims": ["a, (1, 0)"],
    "piecewise": ["v, [v < 0, v >= 0], [-1.0, 1.0]"],
    "poly": ["v"],
    "polyadd": ["v, u"],
    "polyder": ["v"],
    "polydiv": ["v, u"],
    "polyfit": ["p, v, 1"],
    "polyint": ["v"],
    "polymul": ["v, u"],
    "polysub": ["v, u"],
    "polyval": ["v, u"],
    "prod": ["v", "a, 0", "i", "a, axis=(0, 1), keepdims=True", "h"],
    "ptp": ["a", "a, 0"],
    "quantile": ["v, 0.3", "a, [0.25, 0.75], 1", "v, p[:1]"],
    "ravel": ["a", "a, 'F'"],
    "ravel_multi_index": ["(k[:2], k[:2]), (9, 9)"],
    "real": ["z", "a"],
    "real_if_close": ["z", "v + 0j"],
    "repeat": ["v, 2", "a, 2, axis=0", "a, [1, 2], 0", "a, k[:2], axis=0"],
    "reshape": ["a, (3, 2)", "a, -1", "a, (3, 2), 'F'", "a, shape=(6,)"],
    "resize": ["a, (3, 3)"],
    "result_type": ["a, i"],
    "roll": ["v, 1", "a, 1", "a, 1, axis=0", "a, (1, 2), axis=(0, 1)", "a, 1, (0, 1)"],
    "rollaxis": ["a, 1"],
    "roots": ["v"],
    "rot90": ["a", "a, 2"],
    "round": ["a", "a, 1", "i", "i, -1"],
    "searchsorted": ["k, v", "k, 2", "k, v, 'right'"],
    "select": ["[v < 0, v > 1], [v, u]", "[v < 0], [v], 7.0"],
    "setdiff1d": ["k, i"],
    "setxor1d": ["k, i"],
    "shape": ["a"],
    "shares_memory": ["a, a"],
    "sinc": ["v", "k"],
    "size": ["a", "a, 1"],
    "sort": ["v", "a, axis=0", "a, None", "a, 1"],
    "sort_complex": ["z"],
    "split": ["v, 2", "a, [1], axis=1", "a, 3, 1"],
    "squeeze": ["a[None]", "a[None], 0", "a[None], axis=(0,)"],
    "stack": ["[a, b]", "[a, b], axis=-1", "(a, i)"],
    "std": ["a", "a, 0", "a, 0, None, None, 1", "a, axis=1, ddof=1, keepdims=True", "i", "v, correction=1", "r"],
    "sum": ["a", "i", "a, 0", "a, axis=(0, 1)", "f", "h", "a, 1, keepdims=True", "a, where=f", "a, initial=3.0"],
    "swapaxes": ["a, 0, 1"],
    "take": ["v, [0, 2]", "a, 1, 1", "a, k[:2], axis=1", "a, [[0, -1]]", "v, 9, mode='clip'"],
    "take_along_axis": ["a, i % 2, 0", "v, k[:2] - 3, None"],
    "tensordot": ["a, b, 2", "a, b, ([1], [1])", "s, a, (1, 1)"],
    "tile": ["v, 2", "a, (2, 1)"],
    "trace": ["s", "s, 1", "i"],
    "transpose": ["a", "a, (1, 0)"],
    "trapezoid": ["v", "v, dx=0.5", "a, axis=0", "v, p"],
    "tril": ["s", "s, -1"],
    "tril_indices_from": ["s"],
    "trim_zeros": ["i[1]"],
    "triu": ["s", "s, 1"],
    "triu_indices_from": ["s"],
    "union1d": ["k, i"],
    "unique": ["k", "k, return_counts=True"],
    "unique_all": ["k"],
    "unique_counts": ["k"],
    "unique_inverse": ["k"],
    "unique_values": ["k"],
    "unpackbits": ["h"],
    "unravel_index": ["k, (3, 3)"],
    "unstack": ["a", "a, axis=1"],
    "unwrap": ["v"],
    "vander": ["v"],
    "var": ["a", "a, 0, ddof=1", "i, 1"],
    "vdot": ["v, u", "z, z", "a, b"],
    "vsplit": ["a, 2"],
    "vstack": ["(v, u)", "[a, b]"],
    "where": ["a > 0", "f, a, b", "f, a, 0", "f, 1, i", "f, i, 0.5"],
    "zeros_like": ["a", "a, np.int8"],
    "linalg.cholesky": ["s"],
    "linalg.cond": ["s", "s, 1"],
    "linalg.cross": ["a, b"],
    "linalg.det": ["s"],
    "linalg.diagonal": ["s", "s, offset=1"],
    "linalg.eig": [],
    "linalg.eigh": [],
    "linalg.eigvals": [],
    "linalg.eigvalsh": ["s"],
    "linalg.inv": ["s"],
    "linalg.lstsq": ["a.T, v[:3]"],
    "linalg.matmul": ["a, b.T"],
    "linalg.matrix_norm": ["a", "a, ord=1"],
    "linalg.matrix_power": ["s, 3"],
    "linalg.matrix_rank": ["s", "a"],
    "linalg.matrix_transpose": ["a"],
    "linalg.multi_dot": ["[a, s, b.T]"],
    "linalg.norm": ["v", "a", "a, 1", "a, axis=1", "v, np.inf", "a, 'nuc'", "i"],
    "linalg.outer": ["v, u"],
    "linalg.pinv": ["a"],
    "linalg.qr": ["s, mode='r'", "s"],
    "linalg.slogdet": ["s"],
    "linalg.solve": ["s, v[:3]", "s, a.T"],
    "linalg.svd": ["a, compute_uv=False"],
    "linalg.svdvals": ["a"],
    "linalg.tensordot": ["a, b, axes=2"],
    "linalg.tensorinv": ["s.reshape(3, 3), 1"],
    "linalg.tensorsolve": ["s, v[:3]"],
    "linalg.trace": ["s"],
    "linalg.vecdot": ["a, b"],
    "linalg.vector_norm": ["v", "a, axis=0", "a, ord=1"],
    "fft.fft": ["v", "a, 4", "a, axis=0", "z", "v, norm='ortho'"],
    "fft.fft2": ["a"],
    "fft.fftn": ["a", "a, axes=(0,)"],
    "fft.fftshift": ["v", "a, 0"],
    "fft.hfft": ["z"],
    "fft.ifft": ["z"],
    "fft.ifft2": ["a"],
    "fft.ifftn": ["a"],
    "fft.ifftshift": ["v"],
    "fft.ihfft": ["v"],
    "fft.irfft": ["z"],
    "fft.irfft2": ["a"],
    "fft.irfftn": ["a"],
    "fft.rfft": ["v"],
    "fft.rfft2": ["a"],
    "fft.rfftn": ["a"],
    # Not dispatched, but they take arrays.
    "array": ["a", "a, dtype=np.float32"],
    "asarray": ["a"],
    "ascontiguousarray": ["a.T"],
    "asanyarray": ["a"],
    "lib.stride_tricks.sliding_window_view": ["v, 2"],
}
# Functions that have no result to compare, or take no numbers; what they do is tested below.
ELSEWHERE = {
    "can_cast",
    "busday_count", "busday_offset", "datetime_as_string", "is_busday", "array_repr", "array_str", "copyto",
    "fill_diagonal", "place", "put", "put_along_axis", "putmask", "save", "savetxt", "savez", "savez_compressed",
}  # fmt: skip
# The arguments of ufuncs that do not take two matrices of floats.
UFUNCS = {
    **{key: ["i, j", "i, 3"] for key in ("bitwise_and", "bitwise_or", "bitwise_xor", "gcd", "lcm")},
    **{key: ["i, j", "i, 1"] for key in ("left_shift", "right_shift", "bitwise_left_shift", "bitwise_right_shift")},
    **{key: ["i"] for key in ("invert", "bitwise_not", "bitwise_invert", "bitwise_count")},
    **{key: ["p + 1"] for key in ("arccosh", "acosh")},
    **{key: ["a / 4"] for key in ("arccos", "arcsin", "acos", "asin")},
    **{key: ["a / 4"] for key in ("arctanh", "atanh")},
    **{key: ["p", "k"] for key in ("sqrt", "log", "log2", "log10", "log1p")},
    **{key: ["p, v", "i, j", "a, 2", "p, 0.5"] for key in ("power", "pow")},
    "float_power": ["p, v", "i, 2"],
    "ldexp": ["a, j"],
    "isnat": [],
    "matmul": ["a, s", "v, u"],
    "matvec": ["s, v[:3]"],
    "vecmat": ["v[:3], s"],
    "vecdot": ["a, b"],
}


def _public():
    """Every dispatched function of numpy, numpy.linalg and numpy.fft."""
    for prefix, module in (("", np), ("linalg.", np.linalg), ("fft.", np.fft)):
        for name in dir(module):
            found = getattr(module, name)
            if not name.startswith("_") and type(found).__name__ == "_ArrayFunctionDispatcher":
                yield prefix + name


def _calls():
    for name, calls in FUNCTIONS.items():
        yield from (f"np.{name}({arguments})" for arguments in calls if _has(name))
    for name in dir(np):
        ufunc = getattr(np, name)
        if isinstance(ufunc, np.ufunc):
            usual = (
                ["a", "i", "v[0]", "r", "e"]
                if ufunc.nin == 1
                else ["a, b", "i, j", "a, 2", "a, i", "3.0, a", "e, 2.0", "e[:, None], e"]
            )
            yield from (f"np.{name}({arguments})" for arguments in UFUNCS.get(name, usual))


def _has(name: str) -> bool:
    found = np
    for part in name.split("."):
        found = getattr(found, part, None)
    return found is not None


def _tensors():
    return {name: torch.from_numpy(array.copy()) for name, array in ARRAYS.items()}


def _plain(value):
    if isinstance(value, torch.Tensor):
        return value.detach().numpy()
    return [_plain(v) for v in value] if isinstance(value, (tuple, list)) else value


def _same(have, want, call):
    if isinstance(want, (tuple, list)):
        assert len(have) == len(want), call
        for h, w in zip(have, want, strict=True):
            _same(h, w, call)
    elif isinstance(want, (np.ndarray, np.generic, float, complex)):
        have = np.asarray(have)
        assert have.shape == np.shape(want), call
        assert have.dtype == np.asarray(want).dtype, (call, have.dtype, np.asarray(want).dtype)
        np.testing.assert_allclose(
            have, want, rtol=1e-6 if have.dtype.itemsize < 8 else 1e-11, atol=1e-12, err_msg=call
        )
    else:
        assert have == want, call


def test_every_function_is_here():
    names = set(_public())
    assert names - FUNCTIONS.keys() - ELSEWHERE == set()


@pytest.mark.parametrize("call", list(_calls()))
def test_functions_match_numpy_on_arrays(call):
    code = compile(call, "call", "eval")
    with np.errstate(all="ignore"):
        try:
            want = eval(code, {"np": np, **ARRAYS})
        except TypeError:  # floats where NumPy wants integers
            with pytest.raises(TypeError):
                eval(code, {"np": np, **_tensors()})
            return
        have = eval(code, {"np": np, **_tensors()})
    _same(_plain(have), _plain(want), call)


def _rows():
    return torch.tensor([[1.0, 2.0, 4.0], [3.0, 0.5, -1.0]], dtype=torch.float64)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: np.copyto(x, 7.0),
        lambda x: np.copyto(x, np.ones(3), where=np.array([True, False, True])),
        lambda x: np.put(x, [0, 4], [-1.0, -2.0]),
        lambda x: np.place(x, np.asarray(x) > 1, [9.0]),
        lambda x: np.putmask(x, np.asarray(x) > 1, 5.0),
        lambda x: np.put_along_axis(x, np.array([[0], [1]]), 8.0, 1),
        lambda x: np.fill_diagonal(x, 6.0),
        lambda x: np.add.at(x, (np.array([0, 0]), np.array([1, 1])), 1.0),
        lambda x: np.add(x, 1.0, out=x),
        lambda x: np.exp(x, out=x, where=np.asarray(x) < 1),
        lambda x: np.sum(np.ones((2, 3, 2)), axis=2, out=x),
        lambda x: np.clip(x, 0, 1, out=x),
        lambda x: np.cumsum(np.ones((2, 3)), 1, out=x),
        lambda x: np.multiply.accumulate(x, 1, out=x),
    ],
)
def test_writes_by_numpy_reach_the_tensor(write):
    have, want = _rows(), _rows().numpy()
    result, wanted = write(have), write(want)
    np.testing.assert_array_equal(have.numpy(), want)
    assert (result is have) == (wanted is want)


@pytest.mark.parametrize(
    "call",
    [
        lambda x, y: np.add.outer(x, y),
        lambda x, y: np.multiply.outer(x, y.numpy()) if isinstance(y, torch.Tensor) else np.multiply.outer(x, y),
        lambda x, y: np.maximum.outer(x, y),
        lambda x, y: np.add.accumulate(x, 1),
        lambda x, y: np.multiply.accumulate(x),
        lambda x, y: np.maximum.accumulate(x, axis=1),
        lambda x, y: np.add.reduce(x),
        lambda x, y: np.add.reduce(x, axis=None),
        lambda x, y: np.add.reduce(x, axis=(0, 1), keepdims=True),
        lambda x, y: np.multiply.reduce(x, 1),
        lambda x, y: np.maximum.reduce(x, axis=1),
        lambda x, y: np.minimum.reduce(x, axis=1, initial=-9.0),
        lambda x, y: np.logical_and.reduce(x > 0, axis=0),
        lambda x, y: np.subtract.reduce(x, axis=1),
        lambda x, y: np.add.reduceat(x, [0, 1], axis=1),
        lambda x, y: np.add(x, y, where=np.zeros((2, 3), bool), out=np.ones((2, 3))),
        lambda x, y: np.add(x, y, dtype=np.float32),
        lambda x, y: np.sqrt(x * x, casting="same_kind"),
    ],
)
def test_methods_and_keywords_of_ufuncs(call):
    x, y = _rows(), _rows()
    _same(_plain(call(x, y)), call(x.numpy(), y.numpy()), "ufunc")


def test_saving(tmp_path):
    x, read = _rows(), io.BytesIO()
    np.save(tmp_path / "x.npy", x)
    np.savez(tmp_path / "x.npz", x, name=x)
    np.savetxt(tmp_path / "x.txt", x)
    np.savez_compressed(read, x=x)
    read.seek(0)
    found = np.load(tmp_path / "x.npz")
    for array in (np.load(tmp_path / "x.npy"), found["name"], found["arr_0"], np.loadtxt(tmp_path / "x.txt")):
        np.testing.assert_array_equal(array, x.numpy())
    np.testing.assert_array_equal(np.load(read)["x"], x.numpy())


DIFFERENTIABLE = {
    "sum": lambda x: np.sum(x, axis=1),
    "mean": lambda x: np.mean(x, 0),
    "std": lambda x: np.std(x, 1, ddof=1),
    "median": lambda x: np.median(x, 1),
    "percentile": lambda x: np.percentile(x, 30, axis=1),
    "average": lambda x: np.average(x, 1, [1.0, 2.0, 3.0]),
    "ptp": lambda x: np.ptp(x, 1),
    "flip": lambda x: np.flip(x, 1),
    "roll": lambda x: np.roll(x, 1, axis=0),
    "repeat": lambda x: np.repeat(x, 2, 0),
    "append": lambda x: np.append(x, x, axis=1),
    "pad": lambda x: np.pad(x, 1),
    "sort": lambda x: np.sort(x, 1),
    "cumsum": lambda x: np.cumsum(x),
    "concatenate": lambda x: np.concatenate([x, np.ones((1, 3))]),
    "stack": lambda x: np.stack([x, x], -1),
    "where": lambda x: np.where(x > 1.5, x, 0),
    "clip": lambda x: np.clip(x, 0, 2.5),
    "cross": lambda x: np.cross(x, [1.0, 2.0, 3.0]),
    "einsum": lambda x: np.einsum("ij,kj->ik", x, np.ones((2, 3))),
    "dot": lambda x: np.dot(x, np.ones(3)),
    "tensordot": lambda x: np.tensordot(x, x, 2),
    "solve": lambda x: np.linalg.solve(x @ x.T, x),
    "norm": lambda x: np.linalg.norm(x, axis=1),
    "qr": lambda x: np.linalg.qr(x.T, mode="r"),
    "fft": lambda x: np.abs(np.fft.rfft(x)),
    "cbrt": lambda x: np.cbrt(x),
    "divmod": lambda x: np.divmod(x, 0.7)[1],
    "outer": lambda x: np.multiply.outer(x, np.ones(2)),
    "hypot": lambda x: np.hypot(x, 2.0),
}


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_flow_through(name):
    call = DIFFERENTIABLE[name]
    assert torch.autograd.gradcheck(call, (_rows().requires_grad_(),))


@pytest.mark.parametrize("name", [n for n in DIFFERENTIABLE if n not in ("qr", "solve", "median", "percentile", "fft")])
def test_on_devices(device, name):
    x = _rows().float()
    have = DIFFERENTIABLE[name](x.to(device))
    assert isinstance(have, torch.Tensor) and have.device.type == torch.device(device).type
    np.testing.assert_allclose(have.cpu().numpy(), DIFFERENTIABLE[name](x.numpy()), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: np.histogram(x),
        lambda x: np.interp(0.5, x[0], x[1]),
        lambda x: np.convolve(x[0], x[1]),
        lambda x: np.save(io.BytesIO(), x),
        lambda x: np.spacing(x),
        lambda x: np.add(x, 1.0, dtype=np.float32),
    ],
)
def test_functions_without_an_op_refuse_gradients(call):
    call(_rows())
    with pytest.raises(RuntimeError, match="Can't call numpy\\(\\) on Tensor that requires grad"):
        call(_rows().requires_grad_())


def test_operators_have_torchs_dtypes_and_functions_numpys():
    x = torch.tensor([1, 2, 3], dtype=torch.int32)
    assert (x / np.array([2, 2, 2], dtype=np.int32)).dtype is torch.float32
    assert np.sqrt(x).dtype is torch.float64 and np.mean(x).dtype is torch.float64
    assert (np.float64(2) * torch.ones(2)).dtype is torch.float32


def test_signatures_are_numpys():
    from torchlite._interop.numpy_implementations import IMPLEMENTATIONS

    for name, function in IMPLEMENTATIONS.items():
        theirs = np
        for part in name.split("."):
            theirs = getattr(theirs, part, None)
        try:
            theirs = inspect.signature(theirs)
        except (TypeError, ValueError):
            continue
        for have, want in zip(
            inspect.signature(function).parameters.values(), theirs.parameters.values(), strict=False
        ):
            if have.kind is not have.VAR_KEYWORD and want.kind is not want.VAR_KEYWORD:
                assert have.name == want.name, (name, have, want)


@pytest.mark.parametrize("function", [np.max, np.min, np.argmax, np.ptp, np.amin])
def test_reductions_of_nothing_raise_numpys_errors(function):
    with pytest.raises(ValueError, match="zero-size array|empty sequence"):
        function(torch.zeros(0))


def test_dtypes_that_numpy_has_not():
    b, h = torch.ones(2, dtype=torch.bfloat16), torch.ones(2, dtype=torch.half)
    assert np.stack([b, h]).dtype is torch.float32 and np.sin(b).dtype is torch.bfloat16
    assert np.mean(b).dtype is torch.bfloat16 and np.sum(torch.ones(3, device="meta")).shape == ()
    z = torch.tensor([1 + 2j, 3j]).conj()
    assert np.sum(z).item() == 1 - 5j and not np.conj(torch.tensor([1j])).is_conj()


def test_splits_along_dimensions_that_arrays_must_have():
    flat, x = torch.arange(6.0), torch.arange(24.0).reshape(2, 3, 4)
    assert [part.tolist() for part in np.hsplit(flat, 2)] == [[0, 1, 2], [3, 4, 5]]
    assert [tuple(part.shape) for part in np.dsplit(x, [1, 3])] == [(2, 3, 1), (2, 3, 2), (2, 3, 1)]
    for call, words in (
        (lambda: np.vsplit(flat, 2), "vsplit only works on arrays of 2 or more dimensions"),
        (lambda: np.hsplit(torch.tensor(1.0), 2), "hsplit only works on arrays of 1 or more dimensions"),
        (lambda: np.dsplit(x[0], 2), "dsplit only works on arrays of 3 or more dimensions"),
        (lambda: np.dsplit(x, 3), "array split does not result in an equal division"),
    ):
        with pytest.raises(ValueError, match=words):
            call()


def test_eigenvalues_without_imaginary_parts_are_real():
    for a in (np.array([[2.0, 1.0], [1.0, 3.0]]), np.array([[0.0, 1.0], [-1.0, 0.0]]), np.eye(2) * 1j):
        values, vectors = np.linalg.eig(torch.from_numpy(a))
        expected = np.linalg.eig(a)
        assert values.numpy().dtype == expected[0].dtype and vectors.numpy().dtype == expected[1].dtype
        np.testing.assert_allclose(np.sort_complex(values), np.sort_complex(expected[0]), atol=1e-12)
        assert np.linalg.eigvals(torch.from_numpy(a)).numpy().dtype == np.linalg.eigvals(a).dtype


@pytest.mark.parametrize("kind", [torch.float32, torch.int64, torch.bool, torch.complex64], ids=str)
@pytest.mark.parametrize("array", ["float64", "float32", "int32", "complex64"])
def test_matrix_products_of_arrays_and_tensors_have_the_common_dtype(array, kind):
    a, t = np.arange(4).reshape(2, 2).astype(array), torch.arange(1, 5).reshape(2, 2).to(kind)
    want = torch.from_numpy(a).to((torch.from_numpy(a) + t).dtype)
    other = t.to(want.dtype)
    for have, right in [
        (a @ t, want @ other),
        (t @ a, other @ want),
        (a @ t[0], want @ other[0]),
        (a[0] @ t, want[0] @ other),
        (np.matmul(a, t), want @ other),
    ]:
        assert have.dtype == right.dtype and torch.equal(have, right)
    if np.lib.NumpyVersion(np.__version__) >= "2.2.0":
        assert torch.equal(np.matvec(a, t[0]), want @ other[0])
        assert torch.equal(np.vecmat(a[0], t), want[0].conj() @ other)


@pytest.mark.parametrize(
    "find", [lambda x: np.where(x > 1), lambda x: np.nonzero(x > 1), lambda x: (np.flatnonzero(x > 1),)]
)
def test_places_index_arrays_as_arrays_do(find):
    """A Tensor of one element in a tuple would be an integer for an array: one dimension fewer."""
    x = torch.tensor([0.0, 1.0, 2.0], requires_grad=True)
    (places,) = find(x)
    assert type(places) is np.ndarray and places.dtype == np.int64
    assert np.arange(3.0)[(places,)].shape == np.eye(3)[(places,)].shape[:1] == (1,)
    assert x[(places,)].tolist() == [2.0]
