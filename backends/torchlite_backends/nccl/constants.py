"""Constants of NCCL's header `nccl.h`; a test compares them with a table recorded from it."""

from __future__ import annotations

from typing import Any

DTYPES = {
    "int8": 0, "uint8": 1, "int32": 2, "uint32": 3, "int64": 4, "uint64": 5, "float16": 6, "float32": 7, "float64": 8,
    "bfloat16": 9,
}  # fmt: skip
BYTES = DTYPES["uint8"]  # type of all transfers
REDUCE_OPS = {"SUM": 0, "PRODUCT": 1, "MAX": 2, "MIN": 3}
RESULT_NAMES = {
    0: "ncclSuccess", 1: "ncclUnhandledCudaError", 2: "ncclSystemError", 3: "ncclInternalError",
    4: "ncclInvalidArgument", 5: "ncclInvalidUsage", 6: "ncclRemoteError", 7: "ncclInProgress", 8: "ncclTimeout",
}  # fmt: skip
RESULT_MEANINGS = {
    1: "a call of CUDA failed; NCCL_DEBUG=INFO says which",
    2: "a call of the system, such as of the network, failed; NCCL_DEBUG=WARN says which",
    3: "NCCL went wrong, or memory was corrupted; NCCL_DEBUG=WARN says more",
    4: "an argument of a call was wrong",
    5: "a call did not fit the group: ranks called different collectives, or one device serves two ranks",
    6: "another rank failed, or the network to it did",
    8: "a call took too long",
}
ID_BYTES = 128  # size of ncclUniqueId, which the ranks of a new group share


def nccl_dtype_of(array: Any) -> int:
    """Return the number of an array's dtype. RuntimeError if NCCL has no arithmetic for it."""
    name = str(array.dtype).rpartition(".")[2]
    if name not in DTYPES:
        raise RuntimeError(f"NCCL does not reduce {name}")
    return DTYPES[name]


def nccl_op_of(name: str) -> int:
    """Return the number of a reduction. RuntimeError if NCCL lacks it."""
    if name not in REDUCE_OPS:
        raise RuntimeError(f"Cannot use ReduceOp.{name} with NCCL")
    return REDUCE_OPS[name]


def describe_error(error: BaseException) -> str:
    """Return name and meaning of a CuPy NCCL error. CuPy raises KeyError for newer codes, without a message."""
    status = getattr(error, "status", None)
    if status is None and isinstance(error, KeyError) and error.args:
        status = error.args[0]
    if status not in RESULT_NAMES:
        return f"NCCL: {error}"
    return f"{RESULT_NAMES[status]}: {RESULT_MEANINGS.get(status, error)}"
