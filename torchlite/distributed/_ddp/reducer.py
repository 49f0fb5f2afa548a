"""`Reducer`: averages gradients over processes during backward.

A hook on each parameter's gradient copies it to its bucket. When a bucket is complete, and those before it are in
flight, its reduction starts: all processes reduce the same buckets in the same order. Later hooks poll the messages. At
the end of backward, a callback waits for the rest and sets the gradients.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from typing import Any

import torchlite as torch
import torchlite.distributed as dist
from torchlite.autograd.engine import edge_of, flatten_edges, node_of, reachable
from torchlite.autograd.graph import get_gradient_edge
from torchlite.autograd.hook_runner import CURRENT_PASSES
from torchlite.distributed._grad_bucket import GradBucket

from .gradient_buckets import Bucket, compute_bucket_assignment
from .sparse_all_reduce import reduce_sparse

Hook = Callable[[Any, GradBucket], Any]


class Reducer:
    """Buckets of a model's parameters, and the state of their reduction."""

    def __init__(
        self,
        parameters: list[Any],
        names: list[str],
        sparse: list[bool],
        group: Any,
        limits: Sequence[int],
        find_unused: bool,
        as_views: bool,
        skip_unused: bool = False,
    ) -> None:
        self.parameters, self.names, self.sparse, self.group = parameters, names, sparse, group
        self.limits, self.find_unused, self.as_views, self.skip_unused = (
            list(limits),
            find_unused,
            as_views,
            skip_unused,
        )
        self.size = group.size()
        self.divisor: float = self.size
        self.hook: tuple[Any, Hook] | None = None
        self.low_precision: Any = None  # dtype of the reduction
        self.static = False
        self.times: dict[int, int] = {}  # hooks that a parameter's gradient gets, of a static graph
        self.rebuilt = False
        self.iteration = 0
        self.waited = 0.0  # seconds at the end of the last backward pass
        self.order: list[int] = []  # order of the gradients, until buckets are rebuilt
        self.prior: Any = None  # a work that must be done before the first bucket
        self.works: list[Any] = []
        self._expects = self._begun = False
        self._count: dict[int, int] = {}
        self._ready: set[int] = set()
        self._unused: list[int] = []
        self._used: set[int] = set()
        self._next = 0
        self._used_map: Any = None
        self._map_work: Any = None
        self._never: set[int] = set()  # parameters that no rank used
        self.buckets: list[Bucket] = []
        self._make_buckets(list(reversed(compute_bucket_assignment(parameters, self.limits, sparse))))
        self.handles = [self._register_gradient_hook(number, parameter) for number, parameter in enumerate(parameters)]

    def _register_gradient_hook(self, number: int, parameter: Any) -> Any:
        # On the node that adds to the gradient: hooks on the parameter have all been called then.
        return get_gradient_edge(parameter).node.register_hook(lambda *_: self._on_gradient_ready(number))

    def remove(self) -> None:
        """Remove the hooks."""
        for handle in self.handles:
            handle.remove()
        self.handles = []

    def _make_buckets(self, numbers: list[list[int]]) -> None:
        old = {number: (self.buckets[at], i) for number, (at, i) in self._bucket_positions().items()}
        self.buckets = [
            Bucket(index, members, [self.parameters[n] for n in members], self.sparse[members[0]], self.low_precision)
            for index, members in enumerate(numbers)
        ]
        self.place = self._bucket_positions()
        if self.as_views and old:
            for number, (bucket, i) in old.items():
                parameter = self.parameters[number]
                if not bucket.sparse and _is_view(parameter.grad, bucket.views[i]):
                    at, position = self.place[number]
                    self.buckets[at].views[position].copy_(parameter.grad)
                    parameter.grad = self.buckets[at].views[position]

    def _bucket_positions(self) -> dict[int, tuple[int, int]]:
        return {n: (bucket.index, i) for bucket in self.buckets for i, n in enumerate(bucket.numbers)}

    def set_low_precision(self, dtype: Any) -> None:
        """Set the dtype of the reduction."""
        self.low_precision = dtype
        self._make_buckets([bucket.numbers for bucket in self.buckets])

    # -- before backward

    def check_finished(self) -> None:
        """Raise RuntimeError if the last backward left parameters without a gradient."""
        if not self._begun:
            return
        missing = [n for n in range(len(self.parameters)) if n not in self._ready]
        words = (
            "Expected to have finished reduction in the prior iteration before starting a new one. This error "
            "indicates that your module has parameters that were not used in producing loss. "
        )
        if self.find_unused:
            words += (
                "Since `find_unused_parameters=True` is enabled, this likely means that not all `forward` outputs "
                "participate in computing loss. You can fix this by making sure all `forward` function outputs "
                "participate in calculating loss. "
            )
        else:
            words += (
                "You can enable unused parameter detection by passing the keyword argument "
                "`find_unused_parameters=True` to `torch.nn.parallel.DistributedDataParallel`, and by \nmaking sure "
                "all `forward` function outputs participate in calculating loss. "
            )
        words += (
            "\nIf you already have done the above, then the distributed data parallel module wasn't able to locate the "
            "output tensors in the return value of your module's `forward` function. Please include the loss function "
            "and the structure of the return value of `forward` of your module when reporting this issue (e.g. list, "
            "dict, iterable)."
        )
        if missing:
            numbers = " ".join(map(str, missing))
            if os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper() in ("INFO", "DETAIL"):
                words += "\nParameters which did not receive grad for rank {}: {}".format(
                    self.group.rank(), ", ".join(self.names[n] for n in missing)
                )
                words += f"\nParameter indices which did not receive grad for rank {self.group.rank()}: {numbers}"
            else:
                words += (
                    f"\nParameter indices which did not receive grad for rank {self.group.rank()}: {numbers}\n In "
                    "addition, you can set the environment variable TORCH_DISTRIBUTED_DEBUG to either INFO or DETAIL "
                    "to print out information about which particular parameters did not receive gradient on this rank "
                    "as part of this error"
                )
        raise RuntimeError(words)

    def rebuild(self) -> bool:
        """Rebuild the buckets in rank 0's gradient order of the first backward; return True if they changed."""
        self.check_finished()
        if self.rebuilt or not self.order or (self.find_unused and not self.static):
            return False
        if len(self.order) != len(self.parameters):
            return False
        numbers = compute_bucket_assignment(
            [self.parameters[n] for n in self.order], self.limits, [self.sparse[n] for n in self.order], self.order
        )
        words = torch.tensor([n for members in numbers for n in (*members, -1)])
        sized = torch.tensor([len(words)])
        dist.broadcast(sized, dist.get_global_rank(self.group, 0), group=self.group)
        if sized.item() != len(words):
            words = torch.zeros(int(sized.item()), dtype=torch.int64)
        dist.broadcast(words, dist.get_global_rank(self.group, 0), group=self.group)
        numbers, members = [], []
        for n in words.tolist():
            if n >= 0:
                members.append(n)
            else:
                numbers.append(members)
                members = []
        self._make_buckets(numbers)
        self.rebuilt = True
        return True

    def prepare(self, outputs: list[Any] | None) -> None:
        """Prepare a backward with a reduction; with `outputs` find the parameters that do not affect them."""
        self.check_finished()
        self.iteration += 1
        self._expects, self._begun = True, False
        self.divisor = self.size
        self._ready, self._next, self.works, self._used_map = set(), 0, [], None
        self._count = {}
        for bucket in self.buckets:
            bucket.reset()
        if self.static and self.times:
            self._unused = [n for n in range(len(self.parameters)) if not self.times.get(n)]
        else:
            self._unused = [] if outputs is None else self._find_unused(outputs)
        self._used = set()

    def _find_unused(self, outputs: list[Any]) -> list[int]:
        roots = [edge_of(output) for output in outputs if output.requires_grad]
        nodes = reachable([node for node in map(node_of, roots) if node is not None])
        leaves = {id(e) for node in nodes for e in flatten_edges(node._edges) if isinstance(e, torch.Tensor)}
        leaves |= {id(root) for root in roots if isinstance(root, torch.Tensor)}
        return [n for n, parameter in enumerate(self.parameters) if id(parameter) not in leaves]

    # -- during backward

    def _on_gradient_ready(self, number: int) -> None:
        """Handle a parameter's gradient."""
        if not self._expects:
            return
        if not self._begun:
            self._begun = True
            if self._is_learning_static_graph():
                CURRENT_PASSES.runs[0].callbacks += (self._finish_learning_static_graph,)
            elif self.find_unused:
                CURRENT_PASSES.runs[0].callbacks += (self._mark_unused,)
            for unused in self._unused:
                if not self._is_learning_static_graph():
                    self._mark_gradient_ready(unused, False)
        if self.static:
            self._count[number] = self._count.get(number, 0) + 1
            if self._is_learning_static_graph():
                if self._count[number] == 1:
                    self.order.append(number)
                return
            expected = self.times.get(number, 0)
            if not expected:
                raise RuntimeError(
                    "Your training graph has changed in this iteration, e.g., one parameter is unused in first "
                    "iteration, but then got used in the second iteration. this is not compatible with static_graph "
                    "set to True."
                )
            if self._count[number] < expected:
                return
        elif number in self._ready:
            self._raise_marked_twice(number)
        elif not self.rebuilt:
            self.order.append(number)
        self._mark_gradient_ready(number, True)

    def _is_learning_static_graph(self) -> bool:
        return self.static and not self.times

    def _finish_learning_static_graph(self) -> None:
        """Reduce everything after the first backward of a static graph."""
        counted = dict(self._count)
        self.order += [n for n in range(len(self.parameters)) if n not in counted]
        for number in range(len(self.parameters)):
            self._mark_gradient_ready(number, number in counted)
        self.times = counted

    def _mark_unused(self) -> None:
        """After backward, mark parameters without a gradient: no loss depends on their outputs."""
        for number in range(len(self.parameters)):
            if self._begun and number not in self._ready:
                self._mark_gradient_ready(number, False)

    def _raise_marked_twice(self, number: int) -> None:
        words = (
            "Expected to mark a variable ready only once. This error is caused by one of the following reasons: 1) "
            "Use of a module parameter outside the `forward` function. Please make sure model parameters are not "
            "shared across multiple concurrent forward-backward passes. or try to use _set_static_graph() as a "
            "workaround if this module graph does not change during training loop.2) Reused parameters in multiple "
            "reentrant backward passes. For example, if you use multiple `checkpoint` functions to wrap the same part "
            "of your model, it would result in the same set of parameters been used by different reentrant backward "
            "passes multiple times, and hence marking a variable ready multiple times. DDP does not support such use "
            "cases in default. You can try to use _set_static_graph() as a workaround if your module graph does not "
            f"change over iterations.\nParameter at index {number}"
        )
        if os.environ.get("TORCH_DISTRIBUTED_DEBUG", "OFF").upper() in ("INFO", "DETAIL"):
            words += f" with name {self.names[number]}"
        raise RuntimeError(
            f"{words} has been marked as ready twice. This means that multiple autograd engine  hooks have fired for "
            "this particular parameter during this iteration."
        )

    def _mark_gradient_ready(self, number: int, used: bool) -> None:
        """Mark a gradient as ready, or as unused."""
        if self.prior is not None:
            self._take_prior()
        self._ready.add(number)
        if used:
            self._used.add(number)
        at, position = self.place[number]
        bucket = self.buckets[at]
        self._fill_bucket(bucket, position, self.parameters[number], used)
        bucket.left.discard(number)
        for work in self.works:
            # Futures of hooks are not polled: their callbacks may send more, which all ranks must do in one order.
            if work.__class__ is _BucketWork:
                work.done()
        while self._next < len(self.buckets) and not self.buckets[self._next].left:
            self._launch_reduction(self.buckets[self._next])
            self._next += 1
        if self._next == len(self.buckets) and len(self.works) == len(self.buckets):
            if self._exchanges_used_map():
                self._used_map = torch.tensor([int(n in self._used) for n in range(len(self.parameters))])
                self._map_work = dist.all_reduce(self._used_map, group=self.group, async_op=True)
            if CURRENT_PASSES.runs:
                CURRENT_PASSES.runs[0].callbacks += (self._wait_and_set_gradients,)
            else:
                self._wait_and_set_gradients()

    def _exchanges_used_map(self) -> bool:
        """True if the ranks exchange which parameters they used: for a static graph once."""
        return not self.skip_unused and (self._is_learning_static_graph() if self.static else self.find_unused)

    def _fill_bucket(self, bucket: Bucket, position: int, parameter: Any, used: bool) -> None:
        grad = parameter.grad if used else None
        with torch.no_grad():
            if bucket.sparse:
                bucket.sparse_gradient = grad
                return
            view = bucket.views[position]
            if grad is None:
                view.zero_()
                return
            if grad.is_sparse:
                raise RuntimeError(
                    f"the gradient of {self.names[bucket.numbers[position]]} is sparse, and that was not expected: DDP "
                    "knows it of Embedding and EmbeddingBag with sparse=True"
                )
            if not _is_view(grad, view):
                view.copy_(grad.detach())
            if self.hook is None:
                if view.dtype.is_floating_point:
                    view.mul_(1 / self.divisor)
                else:
                    view.div_(self.divisor)

    def _launch_reduction(self, bucket: Bucket) -> None:
        if bucket.sparse:
            self.works.append(reduce_sparse(self.group, bucket, self.divisor))
        elif self.hook is None:
            self.works.append(_BucketWork(dist.all_reduce(bucket.buffer, group=self.group, async_op=True), bucket))
        else:
            self.works.append(self.run_hook(self._make_grad_bucket(bucket)))

    def _take_prior(self) -> None:
        """Take the join context's count of active processes, the divisor from now on."""
        work, tensor, fixed = self.prior
        self.prior = None
        work.wait()
        if not fixed:
            self.divisor = float(tensor.item())

    def _make_grad_bucket(self, bucket: Bucket) -> GradBucket:
        last = bucket.index == len(self.buckets) - 1
        return GradBucket(bucket.index, bucket.buffer, bucket.views, bucket.parameters, last)

    def run_hook(self, given: GradBucket) -> Any:
        """Return the future of a bucket's reduction."""
        assert self.hook is not None
        state, hook = self.hook
        future = hook(state, given)
        if not isinstance(future, torch.futures.Future):
            raise RuntimeError(
                "Expected hook to return a `torch.futures.Future` object, but got " + type(future).__name__
            )
        return future

    # -- after backward

    def _wait_and_set_gradients(self) -> None:
        """Wait for the buckets, and set the gradients."""
        works, self._expects, self._begun = self.works, False, False
        self.waited = 0.0
        with torch.no_grad():
            for bucket, work in zip(self.buckets, works, strict=True):
                start = time.perf_counter()
                value = work.wait()
                self.waited += time.perf_counter() - start
                while isinstance(value, list | tuple):
                    value = value[0]
                self._write_gradients(bucket, value)
        self.works = []

    def _find_globally_unused(self) -> set[int]:
        if self._used_map is not None:
            self._map_work.wait()
            self._never = {n for n, count in enumerate(self._used_map.tolist()) if not count}
            self._used_map = None
        return set(self._unused) if self.skip_unused else self._never

    def _write_gradients(self, bucket: Bucket, value: Any) -> None:
        unused = self._find_globally_unused()
        if bucket.sparse:
            if bucket.numbers[0] not in unused:
                bucket.parameters[0].grad = value
            return
        views = bucket.views
        if value is not bucket.buffer and value.data_ptr() != bucket.buffer.data_ptr():
            if self.as_views and value.dtype is bucket.buffer.dtype:
                bucket.buffer.copy_(value.reshape(-1))
            else:
                from .gradient_buckets import bucket_views

                views = bucket_views(value.reshape(-1), bucket.parameters)
        for number, parameter, view in zip(bucket.numbers, bucket.parameters, views, strict=True):
            if number in unused:
                continue
            if self.as_views and view.dtype is parameter.dtype:
                if not _is_view(parameter.grad, view):
                    parameter.grad = view
            elif parameter.grad is None:
                parameter.grad = view.to(parameter.dtype, copy=True)
            else:
                parameter.grad.copy_(view)

    # -- joined processes

    def shadow(self) -> None:
        """Shadow a backward of the others with zeros."""
        for bucket in self.buckets:
            bucket.reset()
        self.works, self._next = [], 0
        with torch.no_grad():
            for bucket in self.buckets:
                if not bucket.sparse:
                    bucket.buffer = torch.zeros_like(bucket.buffer) if self.as_views else bucket.buffer.zero_()
                self._launch_reduction(bucket)
            for bucket, work in zip(self.buckets, self.works, strict=True):
                value = work.wait()
                while isinstance(value, list | tuple):
                    value = value[0]
                self._write_gradients(bucket, value)  # an optimizer with partitioned state steps with them
        self.works = []
        if self._exchanges_used_map():
            dist.all_reduce(torch.zeros(len(self.parameters), dtype=torch.int64), group=self.group)
            self.times = self.times or dict.fromkeys(range(len(self.parameters)), 1)
        self.order = self.order or list(range(len(self.parameters)))  # rank 0's order is used, whatever this is


class _BucketWork:
    """Reduction in flight, with the bucket's buffer as result."""

    def __init__(self, work: Any, bucket: Bucket) -> None:
        self.work, self.buffer = work, bucket.buffer

    def done(self) -> bool:
        """True if complete; polls the messages."""
        return self.work.is_completed()

    def wait(self) -> Any:
        """Wait, and return the sum."""
        self.work.wait()
        return self.buffer


def _is_view(grad: Any, view: Any) -> bool:
    return (
        grad is not None
        and not grad.is_sparse
        and grad.data_ptr() == view.data_ptr()
        and grad.dtype is view.dtype
        and grad.stride() == view.stride()
    )
