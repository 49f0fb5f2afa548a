"""Matrix products."""

from __future__ import annotations

from typing import Any

xp: Any = None


def _names(*arrays):
    known = {
        "float32": "float",
        "float64": "double",
        "float16": "c10::Half",
        "bfloat16": "c10::BFloat16",
        "int64": "long long",
        "int32": "int",
        "int16": "short",
        "int8": "signed char",
        "uint8": "unsigned char",
        "bool": "bool",
        "complex64": "c10::complex<float>",
        "complex128": "c10::complex<double>",
    }
    return [known.get(str(a.dtype), str(a.dtype)) for a in arrays]


def _check_dtypes(a, b):
    if a.dtype != b.dtype:
        one, two = _names(a, b)
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {one} != {two}")
    if a.dtype.kind == "b":
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")


def _narrow(a):
    """Half precision: products are summed in single precision."""
    return a.dtype.itemsize < 4 and a.dtype.kind not in "biu"


def _product(a, b):
    if _narrow(a):
        return xp.matmul(a.astype(xp.float32), b.astype(xp.float32)).astype(a.dtype)
    return xp.matmul(a, b)


def matmul(input, other):
    kind = input.dtype
    if kind is not other.dtype or kind.itemsize < 4:
        _check_dtypes(input, other)
        return _product(input, other)
    if input.ndim <= 2 and other.ndim <= 2:
        if not input.ndim or not other.ndim:
            raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {input.ndim}D and {other.ndim}D")
        return xp.dot(input, other)
    if other.ndim == 2:
        return (
            xp.dot(input.reshape(-1, input.shape[-1]), other).reshape(*input.shape[:-1], other.shape[-1]) if input.size else xp.matmul(input, other)
        )
    return xp.matmul(input, other)


def mm(input, mat2):
    if input.ndim != 2 or mat2.ndim != 2:
        raise RuntimeError("self must be a matrix" if input.ndim != 2 else "mat2 must be a matrix")
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({input.shape[0]}x{input.shape[1]} and {mat2.shape[0]}x{mat2.shape[1]})")
    kind = input.dtype
    if kind is not mat2.dtype or kind.itemsize < 4:
        _check_dtypes(input, mat2)
        return _product(input, mat2)
    return xp.dot(input, mat2)


def bmm(input, mat2):
    if input.ndim != 3 or mat2.ndim != 3:
        raise RuntimeError(f"batch{1 if input.ndim != 3 else 2} must be a 3D tensor")
    if input.shape[0] != mat2.shape[0] or input.shape[2] != mat2.shape[1]:
        raise RuntimeError(
            f"Expected size for first two dimensions of batch2 tensor to be: [{input.shape[0]}, {input.shape[2]}] but got: "
            f"[{mat2.shape[0]}, {mat2.shape[1]}]."
        )
    _check_dtypes(input, mat2)
    return _product(input, mat2)


def mv(input, vec):
    if input.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {input.ndim}, {vec.ndim}")
    if input.shape[1] != vec.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({input.shape[0]}), mat ({input.shape[0]}x{input.shape[1]}), vec ({vec.shape[0]})")
    _check_dtypes(input, vec)
    return _product(input, vec)


def _check_vectors(name, a, b):
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    if a.dtype != b.dtype:
        one, two = (str(x.dtype).capitalize().rstrip("0123456789") if x.dtype != xp.float64 else "Double" for x in (a, b))
        raise RuntimeError(f"{name} : expected both vectors to have same dtype, but found {one} and {two}")
    if a.shape != b.shape:
        raise RuntimeError(
            f"inconsistent tensor size, expected tensor [{a.shape[0]}] and src [{b.shape[0]}] to have the same number of elements, "
            f"but got "
            f"{a.shape[0]} and {b.shape[0]} elements respectively"
        )
    if a.dtype.kind == "b":
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'")


def dot(input, tensor):
    _check_vectors("dot", input, tensor)
    return _product(input, tensor)


def vdot(input, other):
    _check_vectors("vdot", input, other)
    return _product(xp.conj(input), other)


def _scaled_sum(input, product, beta, alpha):
    """beta * input + alpha * product; input does not count, NaN and all, where beta is 0."""
    if alpha != 1:
        product = product * product.dtype.type(alpha)
    if beta == 0:
        return product
    return xp.add(input if beta == 1 else input * input.dtype.type(beta), product)


def addmm(input, mat1, mat2, *, beta=1, alpha=1):
    return _scaled_sum(input, mm(mat1, mat2), beta, alpha)


def addmv(input, mat, vec, *, beta=1, alpha=1):
    return _scaled_sum(input, mv(mat, vec), beta, alpha)


def addbmm(input, batch1, batch2, *, beta=1, alpha=1):
    bmm(batch1[:, :0], batch2)
    return _scaled_sum(input, _tensordot(batch1, batch2), beta, alpha)


def _tensordot(a, b):
    """The sum of a batch of products as one product."""
    count, rows, inner = a.shape
    return _product(xp.swapaxes(a, 0, 1).reshape(rows, count * inner), b.reshape(count * inner, b.shape[2]))


def baddbmm(input, batch1, batch2, *, beta=1, alpha=1):
    return _scaled_sum(input, bmm(batch1, batch2), beta, alpha)
