"""The stack on which autocast, tracing, vmap, profiling and user modes intercept ops."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from typing import Any

from .._settings import fork_locks
from .callbacks import CALLBACKS
from .dispatch_state import GLOBALS, MODE

_lock = fork_locks.acquire_before_fork(threading.RLock())


class _Share:
    """One thread's part of INTERCEPTORS, which ends with the thread."""

    def __init__(self) -> None:
        self.active = 0

    def __del__(self, lock: Any = _lock, counts: dict = GLOBALS) -> None:
        if self.active:
            with lock:
                counts["INTERCEPTORS"] -= self.active


class _Stack(threading.local):
    """`items` are the active interceptors of this thread, innermost last. The list is never mutated; only the functions
    below replace it.
    """

    def __init__(self):
        self.items: list = []
        self.share = _Share()

    @property
    def active(self) -> int:
        """This thread's part of INTERCEPTORS."""
        return self.share.active


class _View(list):
    """The active interceptors while others are hidden. `under` is restored afterwards, less those that exited and plus
    those entered meanwhile; `first` is the initial list.
    """

    __slots__ = ("under", "first")

    under: list
    first: list


stack = _Stack()


def count_active(change: int) -> None:
    """Change the number of interceptors, in all threads, that require the slow path. The hot path tests only this
    number.
    """
    with _lock:
        GLOBALS["INTERCEPTORS"] += change
        stack.share.active += change


def _reset_after_fork() -> None:
    """The threads that the others' share was of are not there."""
    GLOBALS["INTERCEPTORS"] = max(stack.active, 0)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)


class Interceptor:
    """While active, it receives every op of this thread in `intercept(op, args, kwargs)`; `op(*args, **kwargs)` inside
    calls the next one below.

    >>> import torchlite as torch
    >>> from torchlite._dispatch import Interceptor
    >>> class Names(Interceptor):
    ...     def intercept(self, op, function, args, kwargs):
    ...         print(op.name)
    ...         return function(*args, **kwargs)
    >>> x = torch.ones(2)
    >>> with Names():
    ...     y = x.exp() + 1
    exp
    add
    """

    batches = False  # True for `vmap`, which has a method `custom` for custom Functions
    intercepts_library = True  # whether ops that programs added come here as one
    intercepts_overloads = False  # whether overloads of PyTorch's library come to its method `overload`
    intercepts_functions = False  # whether functions that are no op come here too, by `called`
    sees_operators = False  # whether operators come to `called`, as methods
    casts = False  # whether ops run in other dtypes than those of the call, which `cast` determines
    is_forward = False  # whether it is a level of forward-mode differentiation
    is_dispatch_mode = False  # whether it is one of the thread's dispatch modes for programs
    is_scoped = False  # whether it never outlives the function of the library that entered it
    # How a backward pass runs while this is on its thread's stack: None, unchanged; "ops", as ops that this intercepts;
    # or a replacement for the engine's `RawMode`.
    backward: Any = None

    def intercept(self, op, function, args, kwargs):
        return function(*args, **kwargs)

    def cast(self, op, args, kwargs):
        """(args, kwargs) in which an op is to run that `vmap`, standing above, takes apart; None to see its parts."""
        return None

    def __enter__(self):
        enter(self)
        return self

    def __exit__(self, *exc):
        leave(self)


def enter(item: Interceptor, place: int | None = None) -> None:
    """Push an interceptor on this thread's stack, or insert it at an index."""
    now = stack.items
    place = len(now) if place is None else place
    items = _with_same_view(now, [*now[:place], item, *now[place:]])
    counted = stack.share.active
    try:
        count_active(1)
        stack.items = items  # the last step: an interrupt finds it entered, or not at all
    except BaseException:
        count_active(counted - stack.share.active)
        raise


def leave(item: Interceptor) -> bool:
    """Remove an interceptor from this thread's stack, at any position: a profiler may end within a trace that began
    after it, or while a mode that hides it handles an op. False if it is not on the stack.
    """
    if not _remove_item(item):
        return False
    with _lock:  # inlined `count_active(-1)`: an interrupt could prevent the call
        GLOBALS["INTERCEPTORS"] -= 1
        stack.share.active -= 1
    return True


def list_entered() -> Iterator[Interceptor]:
    """The interceptors on this thread's stack, active or hidden; some occur more than once."""
    items = stack.items
    while items.__class__ is _View:
        yield from items
        items = items.under
    yield from items


def _with_same_view(now: list, items: list) -> list:
    """Items that take the place of others, in the same view."""
    if now.__class__ is not _View:
        return items
    view = _View(items)
    view.under, view.first = now.under, now.first
    return view


def _remove_item(item: Interceptor) -> bool:
    above, items = None, stack.items
    while True:
        for place in range(len(items) - 1, -1, -1):
            if items[place] is item:
                rest = _with_same_view(items, [*items[:place], *items[place + 1 :]])
                if above is None:
                    stack.items = rest
                else:
                    above.under = rest
                return True
        if items.__class__ is not _View:
            return False
        above, items = items, items.under


def show_only(items: list) -> _View:
    """Make only these interceptors, a new list, active in this thread until `put_back` receives the returned view."""
    view = _View(items)
    view.first, view.under = items, stack.items
    stack.items = view
    return view


def put_back(view: _View) -> None:
    """Reactivate the interceptors that a view hides, with later entries and exits preserved. Inner views that an
    interrupt left open end too.
    """
    now = stack.items
    if now is view:
        stack.items = view.under
        return
    found = now
    while found.__class__ is _View and found.first is not view.first:
        found = found.under
    if found.__class__ is not _View:  # another thread's, or ended before
        return
    while now.__class__ is _View:
        _close_top_view(now)
        if now.first is view.first:
            return
        now = stack.items


def close_stale_views(items: list) -> None:
    """End views that were opened after a list was active and are still open."""
    first = items.first if items.__class__ is _View else None
    found = stack.items
    while found.__class__ is _View and found.first is not first:
        found = found.under
    if (found.first if found.__class__ is _View else None) is not first:
        return  # the list's view itself has ended
    while stack.items.__class__ is _View and stack.items.first is not first:
        _close_top_view(stack.items)


def _close_top_view(view: Any) -> None:
    """End the topmost view, in which something was entered or left."""
    fresh, gone = list(enumerate(view)), []
    for item in view.first:
        same = [place for place, (_, other) in enumerate(fresh) if other is item]
        if same:
            del fresh[same[0]]
        else:
            gone.append(item)
    stack.items = view.under
    for item in gone:
        _remove_item(item)
    for place, item in fresh:  # above what it was entered above, below what was hidden
        now = stack.items
        below = [i for i, other in enumerate(now) if place and other is view[place - 1]]
        at = 0 if not place else below[-1] + 1 if below else len(now)
        stack.items = _with_same_view(now, [*now[:at], item, *now[at:]])


def take_over(items: list, active: int = 0) -> None:
    """Continue with the stack and the counters of another thread, which waits or has ended."""
    stack.items = items
    count_active(active)


class show_only_within:
    """Context manager in which only these interceptors are active."""

    def __init__(self, items: list):
        self.items = items

    def __enter__(self) -> None:
        self.view = show_only(self.items)

    def __exit__(self, *exc: Any) -> None:
        put_back(self.view)


class ReenabledInterceptor(show_only_within):
    """Context manager for the handling of an op: the interceptor is active again, for the ops that it is composed
    of.
    """

    def __init__(self, item: Any):
        super().__init__([*stack.items, item])


def call_interceptor(op, function, args, kwargs):
    """Call the topmost interceptor, with the stack below it active."""
    items = stack.items
    view = show_only(items[:-1])
    try:
        return items[-1].intercept(op, function, args, kwargs)
    finally:
        if stack.items is view:  # no call, which an interrupt may forestall
            stack.items = view.under
        else:
            put_back(view)


def vmap_custom_function(function, args, kwargs):
    """The result of a custom Function inside `vmap`; None if no argument is batched."""
    items = stack.items
    for position in range(len(items) - 1, -1, -1):
        if items[position].batches and items[position].has(args):
            with show_only_within(items[:position]):
                return items[position].custom(function, args, kwargs)
    return None


def is_inside_vmap() -> bool:
    """True if this thread is inside `vmap`."""
    return bool(GLOBALS["INTERCEPTORS"]) and any(item.batches for item in stack.items)


def call_library_interceptor(op, function, args, kwargs):
    """Like `call_interceptor`, for the topmost interceptor that receives custom ops, with the others still active;
    NotImplemented if there is none.
    """
    items = stack.items
    for place in range(len(items) - 1, -1, -1):
        if items[place].intercepts_library:
            with show_only_within([*items[:place], *items[place + 1 :]]):
                return items[place].intercept(op, function, args, kwargs)
    return NotImplemented


# Names of parameters that take any number of tensors.
TENSOR_VARARGS = frozenset(("matrices", "operands", "tensors"))


def strip_default_args(op, args, kwargs):
    """The arguments of a call as a program writes it: without those that are a parameter's default."""
    defaults = {p.name: p.default for p in op.params}
    places = [p for p in op.params if not p.kwonly]
    args = tuple(args)
    while args and len(args) <= len(places) and args[-1] is places[len(args) - 1].default:
        args = args[:-1]
    if args and places[len(args) - 1].kind == "varargs" and places[len(args) - 1].name in TENSOR_VARARGS:
        args = *args[:-1], *args[-1]  # any number of tensors, each an argument
    elif (first := op.keywords_from) is not None and len(args) > first:
        kwargs = {p.name: value for p, value in zip(places[first:], args[first:], strict=False)} | kwargs
        args = args[:first]
    return args, {name: value for name, value in kwargs.items() if value is not defaults.get(name, NotImplemented)}


def call_function_mode(function, args, kwargs):
    """The result of the innermost function mode for a call of a function that is not an op, with the outer modes
    active; NotImplemented if there is no mode.
    """
    items = stack.items
    for place in range(len(items) - 1, -1, -1):
        if items[place].intercepts_functions:
            given = {name: value for name, value in kwargs.items() if value is not None and value is not False}
            with show_only_within([*items[:place], *items[place + 1 :]]):
                return items[place].called(function, args, given)
    return NotImplemented


class InPlaceCall:
    """The callable with which an interceptor continues an in-place op."""

    __slots__ = ("run", "record")

    def __init__(self, run, record):
        self.run, self.record = run, record

    def __call__(self, *args, **kwargs):
        return self.run(self.record, args, kwargs)


def holds_plain(value) -> bool:
    """True for a list or tuple of objects of classes without rules or overrides."""
    return value.__class__ in (list, tuple) and GLOBALS["PLAIN"].issuperset([item.__class__ for item in value])


def find_torch_function_override(values):
    """The first argument whose class overrides `__torch_function__`."""
    if MODE.plain:
        return None
    plain = GLOBALS["PLAIN"]
    for value in values:
        if value.__class__ in plain:
            continue
        for item in () if holds_plain(value) else value if value.__class__ in (list, tuple) else (value,):
            cls = item.__class__
            if hasattr(cls, "__torch_function__") and not getattr(cls, "_tl_is_plain", False):
                return item
    return None


def call_torch_function(function, values, args, kwargs, mode=None):
    """Dispatch a call to the `__torch_function__` overrides of the classes among `values`, each once, subclasses before
    base classes. TypeError if all return NotImplemented, as `mode` did before them.
    """
    overriding: list = []
    for value in values:
        for item in value if value.__class__ in (list, tuple) else (value,):
            cls = item.__class__
            if find_torch_function_override((item,)) is None or any(cls is other.__class__ for other in overriding):
                continue
            place = next((i for i, other in enumerate(overriding) if issubclass(cls, other.__class__)), len(overriding))
            overriding.insert(place, item)
    types = tuple(item.__class__ for item in overriding)
    for item in overriding:
        result = item.__torch_function__(function, types, args, kwargs)
        if result is not NotImplemented:
            return result
    name = f"{getattr(function, '__module__', 'torch')}.{getattr(function, '__name__', function)}"
    raise TypeError(
        f"Multiple dispatch failed for '{name.replace('torchlite', 'torch', 1)}'; all __torch_function__ handlers "
        "returned NotImplemented:\n\n"
        + (f"  - mode object {mode}\n" if mode is not None else "")
        + "".join(f"  - tensor subclass {cls}\n" for cls in types)
        + "\nFor more information, try re-running with TORCH_LOGS=not_implemented"
    )


def call_override(function, args, kwargs=None, relevant=None):
    """The result of `__torch_function__` for a function that is not an op; NotImplemented if no class among the
    `relevant` arguments, by default all, overrides it.
    """
    values = (*args, *kwargs.values()) if relevant is None and kwargs else args if relevant is None else relevant
    if find_torch_function_override(values) is None:
        return NotImplemented
    return call_torch_function(function, values, args, kwargs)


def class_rules(values) -> Callable[[str], Any] | None:
    """The rules for ops of the class of a value, or of a value in a list; None if no class has any. Rules are functions
    by name: `run_op`, `run_in_place`, `write_out`.
    """
    plain = GLOBALS["PLAIN"]
    for value in values:
        if value.__class__ in plain:
            continue
        if value.__class__ in (list, tuple):
            found = None if holds_plain(value) else class_rules(value)
            if found is not None:
                return found
        elif getattr(value, "_tl_rules", None).__class__ is str:  # a Mock has any attribute
            return getattr(CALLBACKS, value._tl_rules)
    return None


def torch_dispatch_classes(values) -> tuple:
    """The classes among the arguments whose `__torch_dispatch__` runs ops."""
    if MODE.torch_dispatch_disabled:
        return ()
    found: dict = {}
    plain = GLOBALS["PLAIN"]
    for value in values:
        if value.__class__ in plain:
            continue
        for item in () if holds_plain(value) else value if value.__class__ in (list, tuple) else (value,):
            if getattr(item.__class__, "_tl_dispatches", False):
                found[item.__class__] = None
    return tuple(found)


class torch_function_disabled:
    """Context manager that disables `__torch_function__` of subclasses in this thread."""

    def __enter__(self):
        self.before = MODE.plain
        MODE.plain = True

    def __exit__(self, *exc):
        MODE.plain = self.before


class _DisabledTorchFunction:
    """Value for `__torch_function__` or `__torch_dispatch__` of a class: ops run unchanged and return plain Tensors. An
    object, because a function would be bound when read from a tensor.
    """

    is_disabled_torch_function = True
    _tl_is_immutable = True  # for `torch.compile`

    def __call__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        with torch_function_disabled():
            return func(*args, **(kwargs or {}))


DISABLED_TORCH_FUNCTION = _DisabledTorchFunction()
