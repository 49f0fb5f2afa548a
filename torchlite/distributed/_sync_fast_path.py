"""Fast path of synchronous calls on contiguous CPU tensors of natively supported dtypes.

All calls have one form: elements are read (`given`), others written (`into`), and `how` is the rest (a reduction, a
rank). The first call prepares all that does not depend on the memory and caches it with the group. Later ones check
their tensors and run the transport, without a Work and without copies. Any other case (a copy, conversion, another
device, an error) uses the group's methods, whose messages are the same: ranks may differ in their path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from numpy import may_share_memory, ndarray

from torchlite._dispatch import autograd_graph
from torchlite._dispatch.dispatch_state import GLOBALS
from torchlite._tensor.copy_on_write import materialize

from ._coalescing import open_managers
from ._process_group import ProcessGroup
from ._work import DistBackendError, MessageWork

_MAX_PREPARED_CALLS = 500  # prepared calls of a group: each tag of a message has its own
# By the names that engines have for calls: PyTorch's.
_CALL_TITLES = {
    "all_reduce": "allreduce", "broadcast": "broadcast", "all_gather": "allgather_into_tensor",
    "reduce_scatter": "reduce_scatter_tensor", "all_to_all": "alltoall_base",
    "send": "send to rank {}", "receive": "recv from rank {}",
}  # fmt: skip
# Checks that the written and the read array fit.
_SIZE_CHECKS: dict[str, Callable[[ndarray, ndarray, int], bool]] = {
    "all_gather": lambda into, given, ranks: into.size == given.size * ranks,
    "reduce_scatter": lambda into, given, ranks: into.size * ranks == given.size,
    "all_to_all": lambda into, given, ranks: into.ndim > 0 and into.shape == given.shape and len(into) % ranks == 0,
}


class _PreparedCall(NamedTuple):
    run: Callable[[ndarray | None, ndarray | None], Any]  # returns None, or the request if not complete
    fits: Callable[[ndarray, ndarray, int], bool] | None
    backend: Any
    words: tuple[str, int, str]


def try_fast_path(group: ProcessGroup, call: str, how: Any, into: Any, given: Any = None) -> bool:
    """Run a call on one or two tensors if the fast path applies; return True if it ran.

    DistBackendError if messages did not arrive within the group's timeout.
    """
    known = group._prepared
    if known is None or open_managers.manager is not None:
        return False
    dtype = into.dtype if given is None else given.dtype
    key = (call, how, how.__class__, dtype)  # the class: a reduction equals its number
    try:
        prepared = known[key]
    except KeyError:
        prepared = _prepare_call(group, key)
    if prepared is None:
        return False
    run, fits, backend, words = prepared
    target: Any = None
    source: Any = None
    if into is not None:
        if GLOBALS["WRITE_CHECKS"]:
            materialize(into)
        target = into._tl_array
        if target.__class__ is not ndarray or not target.flags.carray or into._tl_signs:
            return False
    if given is not None:
        source = given._tl_array
        if source.__class__ is not ndarray or not source.flags.c_contiguous or given._tl_signs:
            return False
    if fits is not None and (
        into.dtype is not dtype or not fits(target, source, group._size) or _may_overlap(target, source)
    ):
        return False
    try:
        request = run(target, source)
    except RuntimeError as error:
        raise DistBackendError(f"{'{} on rank {} of {}'.format(*words)}: {error}") from error
    if request is not None:
        MessageWork(request, words, backend._timeout, receives=call == "receive").wait()
    if into is not None:
        autograd_graph.bump_version(into)
    return True


def _may_overlap(one: ndarray, other: ndarray) -> bool:
    """True if arrays may overlap."""
    return one is other or ((one.base is not None or other.base is not None) and may_share_memory(one, other))


def _prepare_call(group: ProcessGroup, key: tuple[Any, ...]) -> _PreparedCall | None:
    call, how, _, dtype = key
    known: dict[Any, Any] = group._prepared  # type: ignore[assignment]
    backend: Any = group._backends.get("cpu")
    prepared = None
    prepare = getattr(backend, "prepared", None)  # backends of others have none
    if prepare is not None and (run := prepare(call, how, dtype)) is not None:
        title = _CALL_TITLES[call].format(how[0] if isinstance(how, tuple) else how)
        prepared = _PreparedCall(run, _SIZE_CHECKS.get(call), backend, (title, backend.rank(), backend._title))
    if len(known) >= _MAX_PREPARED_CALLS:
        known.clear()
    known[key] = prepared
    return prepared
