"""Cache blocking and thread pool: split rows into cache-sized blocks and run them on a few threads.

NumPy's ufuncs run on one core and pass over the full arrays, so a chain of them is bound by memory. Fused CPU kernels
instead process one block of rows at a time, in per-thread buffers, through `run_blocks` or `elementwise`. The ufuncs
release the GIL, so threads help; small inputs run inline.
"""

from __future__ import annotations

import itertools
import math
import os
import sys
import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

import numpy as np

from torchlite._settings.thread_count import get_threads

from .blas import single_threaded

# Minimum and maximum elements per step of a kernel. A ufunc call costs about as much as 4000 elements, and four float32
# buffers of the smaller size fit in 1 MiB of cache. Yet where two threads take turns in Python a few long calls are
# better: of 2^20 elements halves of softmax, layer norm and their backward passes took 0.65 of the time of blocks of
# 2^16, on two cores with 1 MiB of cache each and 32 in common. The numbers of blocks do not depend on that of threads:
# a block's results may depend on its content. A thread that waits for the GIL sleeps for about 25 us: of two threads
# with calls of 20 us each, both take twice as long, with 80 us a tenth longer. Kernels with sums over many rows and a
# second pass therefore use longer blocks still (2^22 elements of layer norm: 1.12 ms, with blocks of 2^18 1.6; Zen 5,
# two cores with 1 MiB each and 32 in common).
BLOCK, LARGEST_BLOCK, ROWS_BLOCK, _HALVES = 1 << 16, 1 << 18, 1 << 19, 2
# Below this many elements a kernel runs inline, in one piece: waking a thread costs as much as the work.
SMALL = 1 << 16
# Up to this many elements one thread is as fast as two for kernels of many passes, and up to more for few fast passes:
# a thread wakes after 30 to 60 us, and so again whenever two wait for the GIL. With as many elements gelu takes the
# same time on two threads as on one (2^16: 1.4 times as long), softmax 0.85 at 2^18, layer norm 1.4 there, 1.0 at 2^20
# and 0.7 at 2^21, its backward 0.9 at 2^19 (Zen 4, two cores of a virtual machine).
MIN_SIZE, MIN_SIZE_FEW_PASSES, MIN_SIZE_FEWEST_PASSES = 1 << 17, 1 << 19, 1 << 20
# Elements from which a row is long, and of NumPy's buffers then. With fewer a run of a strided operand is cut into as
# many pieces: with 16, strided sums and maxima take twice the time, and adding to rows of 56 three times.
LONG_ROW = 512
# Scratch memory above this many bytes is freed after use.
MAX_SCRATCH = 1 << 24

_local = threading.local()


class _WorkerPool:
    """Thread pool; started on first use, and again in a forked child."""

    def __init__(self) -> None:
        self.queue: SimpleQueue[_Task] = SimpleQueue()
        self.count = 0
        self.lock = threading.RLock()  # a handler of a signal may come in between

    def submit(self, function: Callable[[], None], count: int) -> _Task:
        """Make `count` workers call `function` when they wake, unless the task is closed by then."""
        with self.lock:
            while self.count < count:
                threading.Thread(target=self._run_worker, name=f"torchlite-cpu-{self.count}", daemon=True).start()
                self.count += 1
        task = _Task(function)
        for _ in range(count):
            self.queue.put(task)
        return task

    def _run_worker(self) -> None:
        _local.is_worker = True
        np.seterr(all="ignore")  # the state of this thread, which runs kernels alone
        while True:
            task = self.queue.get()
            function = task.begin()
            if function is not None:
                single_threaded.set_worker_depth(task.within)
                try:
                    function()
                except BaseException as error:  # handed to the thread that waits
                    task.error = error
                function = None  # and with it arrays
                task.finish()
            del task


class _Task:
    """Calls of a function that takes the remaining work, and their first error."""

    __slots__ = ("closed", "done", "error", "function", "lock", "running", "within")

    def __init__(self, function: Callable[[], None]) -> None:
        self.function: Callable[[], None] | None = function
        self.closed, self.running = False, 0
        self.error: BaseException | None = None
        self.within = single_threaded.nesting_depth()
        self.lock = threading.Lock()
        self.done = threading.Lock()

    def begin(self) -> Callable[[], None] | None:
        """Return the function to call, None if the task is closed."""
        with self.lock:
            self.running += not self.closed
            return self.function

    def finish(self) -> None:
        with self.lock:
            self.running -= 1
            last = self.closed and self.running == 0
        if last:
            self.done.release()

    def close(self) -> None:
        """Wait for the calls that have begun, and cancel the others, which would find no work.

        Waking a thread takes as long as many kernels, longer on a busy machine. Cancelled calls release the function's
        arrays.
        """
        with self.lock:
            self.closed, self.function = True, None
            if self.running:
                self.done.acquire()
        if self.done.locked():
            self.done.acquire()
        if self.error is not None:
            raise self.error


_workers = _WorkerPool()
if hasattr(os, "register_at_fork"):
    # On reload keep the object: functions bound for a namespace have separate globals, which a new object would not
    # reach.
    os.register_at_fork(after_in_child=_workers.__init__)


def _allocate_aligned_bytes(size: int) -> np.ndarray:
    """Return bytes aligned to 64: NumPy's arrays begin 16 bytes later, and a 64-byte load then touches two cache
    lines.
    """
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size]


def get_scratch_buffer(slot: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """Return scratch memory of this thread, reused between calls: kernels must not return it.

    `slot` distinguishes buffers in use at one time. A signal handler, which may interrupt a kernel, gets other memory.
    """
    dtype = np.dtype(dtype)
    size = math.prod(shape) * dtype.itemsize
    try:
        raw = _local.buffers[slot]
    except (AttributeError, KeyError):
        if not hasattr(_local, "buffers"):
            _local.buffers = {}
        raw = None
    if size > MAX_SCRATCH:
        return _allocate_aligned_bytes(size).view(dtype).reshape(shape)
    if raw is None or raw.nbytes < size or sys.getrefcount(raw.base) != 2:  # arrays on the memory refer to its owner
        raw = _local.buffers[slot] = _allocate_aligned_bytes(max(size, 4 * BLOCK))
    return raw[:size].view(dtype).reshape(shape)


def _run_inline(work: Callable[[], None]) -> None:
    """Run `work()` without sharing nested work: the pool's threads are busy with the same work, so waiting would
    deadlock.
    """
    _local.is_worker = True
    try:
        work()
    finally:
        _local.is_worker = False


def run_blocks(
    body: Callable[[int, int], None],
    rows: int,
    row_size: int,
    block: int = 0,
    worth: int = MIN_SIZE,
    most: int = LARGEST_BLOCK,
) -> None:
    """Call `body(start, stop)` for blocks that cover `range(rows)`, on several threads from `worth` elements.

    Blocks have about `block` elements (0: automatic, up to `most`).
    """
    if rows * row_size <= SMALL:
        if rows:
            body(0, rows)
        return
    block = block or min(max(BLOCK, -(-rows * row_size // _HALVES)), most)
    step = max(1, block // max(row_size, 1))
    count = -(-rows // step)
    # Operands that broadcast along rows are copied into NumPy's buffers when a row is shorter than these; for long rows
    # that costs half the pass.
    long = LONG_ROW <= row_size
    threads = get_threads() if count > 1 and rows * row_size > worth and not getattr(_local, "is_worker", False) else 1
    blocks = iter(range(0, rows, step))

    def run_share() -> None:
        usual = np.setbufsize(LONG_ROW) if long else 0
        try:
            # next() on a range's iterator is atomic under the GIL: threads take blocks as they get ready.
            for start in blocks:
                body(start, min(start + step, rows))
        finally:
            if long:
                np.setbufsize(usual)

    # BLAS calls of several threads (dot products, say) would wait for each other if each used several threads, and
    # BLAS's results depend on its thread count.
    with single_threaded:
        if threads == 1:
            return run_share()
        task = _workers.submit(run_share, min(threads, count) - 1)
        try:
            _run_inline(run_share)
        finally:
            task.close()


def can_share_work() -> bool:
    """True if this thread may share work with the pool."""
    return get_threads() > 1 and not getattr(_local, "is_worker", False)


def parallel_for(body: Callable[..., None], items: Sequence[tuple]) -> None:
    """Call `body(*item)` for all items, on the pool if there are several threads."""
    workers = 1 if getattr(_local, "is_worker", False) else min(get_threads(), len(items))
    if workers < 2:
        for item in items:
            body(*item)
        return
    waiting = iter(items)

    def run_share() -> None:
        for item in waiting:  # taking the next one is atomic
            body(*item)

    task = _workers.submit(run_share, workers - 1)
    try:
        _run_inline(run_share)
    finally:
        task.close()


def parallel_range(body: Callable[[int, int], None], length: int, step: int = 1) -> None:
    """Call `body(start, stop)` for parts that cover `range(length)`, one per thread, of multiples of `step`."""
    count = max(1, min(get_threads(), length // step))
    bounds = [length * k // count // step * step for k in range(count)] + [length]
    parallel_for(body, list(itertools.pairwise(bounds)))


# Maximum number of partial sums, and maximum elements of all partial sums unless they are few.
_SHARES, _FEW_SHARES, _ADDED = 16, 4, 1 << 22


def parallel_sum(summed: Callable[[list], np.ndarray], items: list, size: int) -> np.ndarray:
    """Sum over items in parts that depend only on their number and the sum's size, combined in order.

    The result is the same for any number of threads. `summed(part of items)` returns a new array of `size` elements.
    """
    count = min(len(items), max(_FEW_SHARES, min(_SHARES, _ADDED // max(size, 1))))
    sums: list[Any] = [None] * count

    def sum_part(k: int) -> None:
        sums[k] = summed(items[len(items) * k // count : len(items) * (k + 1) // count])

    parallel_for(sum_part, [(k,) for k in range(count)])
    total, *others = sums
    for other in others:
        total += other
    return total


def apply_elementwise_blocks(body: Callable[..., None], out: np.ndarray, *inputs: np.ndarray, block: int = 0) -> None:
    """Call `body(out_block, *input_blocks)` over flat blocks of contiguous arrays of one shape; `block` as in
    `run_blocks`.
    """
    size = out.size
    if size <= max(SMALL, block):
        if size:
            body(out, *inputs)
        return
    flat = [a.reshape(-1) for a in (out, *inputs)]
    run_blocks(lambda start, stop: body(*[a[start:stop] for a in flat]), size, 1, block)
