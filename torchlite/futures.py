"""Results that come later."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from torchlite._settings.module_dir import make_module_dir

__all__ = ["Future", "collect_all", "wait_all"]

_T = TypeVar("_T")


class Future(Generic[_T]):
    """Value that one thread sets and others wait for.

    Args:
        devices: Has no effect: the streams of a device order its work.

    Example:
        >>> future = torch.futures.Future()
        >>> later = future.then(lambda done: done.value() + 1)
        >>> future.set_result(2)
        >>> later.wait(), later.done()
        (3, True)
    """

    def __init__(self, *, devices: Any = None) -> None:
        self._condition = threading.Condition()
        self._done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[Future], Any]] = []

    def done(self) -> bool:
        """Returns whether there is a value or an error."""
        return self._done

    def wait(self) -> Any:
        """Waits for the value and returns it, or raises the error that was set."""
        with self._condition:
            while not self._done:
                self._condition.wait()
        return self.value()

    def value(self) -> Any:
        """Returns the value, or raises the error that was set.

        Raises:
            RuntimeError: There is neither.
        """
        if not self._done:
            raise RuntimeError("value() called on a Future that is not completed")
        if self._error is not None:
            raise self._error
        return self._value

    def then(self, callback: Callable[[Future], Any]) -> Future:
        """Returns a future of ``callback(self)``, which runs when this future is done.

        Args:
            callback: The function. An error that it raises is the new future's.
        """
        made = self._make_chained_future()

        def run(done: Future) -> None:
            try:
                made.set_result(callback(done))
            except Exception as error:  # raised by the future's wait
                made.set_exception(error)

        self._call_when_done(run)
        return made

    def _make_chained_future(self) -> Future:
        return Future()

    def add_done_callback(self, callback: Callable[[Future], None]) -> None:
        """Calls ``callback(self)`` when this future is done. Its errors are logged.

        Args:
            callback: The function.
        """

        def run(done: Future) -> None:
            try:
                callback(done)
            except Exception as error:  # one callback's error must not stop the others
                import logging

                logging.getLogger(__name__).error("Got the following error when running the callback: %s", error)

        self._call_when_done(run)

    def _call_when_done(self, callback: Callable[[Future], Any]) -> None:
        with self._condition:
            if not self._done:
                self._callbacks.append(callback)
                return
        callback(self)

    def set_result(self, result: Any) -> None:
        """Sets the value.

        Args:
            result: The value.

        Raises:
            RuntimeError: The future is done.
        """
        self._complete(result, None)

    def set_exception(self, result: BaseException) -> None:
        """Sets an error, which `wait` raises.

        Args:
            result: The error.

        Raises:
            AssertionError: ``result`` is not an `Exception`.
            RuntimeError: The future is done.
        """
        if not isinstance(result, Exception):
            raise AssertionError(f"{result} is of type {type(result)}, not an Exception.")
        self._complete(None, result)

    def _complete(self, value: Any, error: BaseException | None) -> None:
        with self._condition:
            if self._done:
                raise RuntimeError("Future has already been marked completed, but got another result")
            self._value, self._error, self._done = value, error, True
            callbacks, self._callbacks = self._callbacks, []
            self._condition.notify_all()
        if callbacks:
            self._run_callbacks(callbacks)

    def _run_callbacks(self, callbacks: list[Callable[[Future], Any]]) -> None:
        for callback in callbacks:
            callback(self)


def collect_all(futures: list[Future]) -> Future:
    """Returns a future of a list of futures, which is done when all of them are.

    Args:
        futures: The list.

    Example:
        >>> first, second = torch.futures.Future(), torch.futures.Future()
        >>> both = torch.futures.collect_all([first, second])
        >>> first.set_result(1); second.set_result(2)
        >>> [future.value() for future in both.wait()]
        [1, 2]
    """
    combined: Future[Any] = Future()
    left = len(futures)
    lock = threading.Lock()

    def one_done(_: Future) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            combined.set_result(futures)

    for future in futures:
        future._call_when_done(one_done)
    if not futures:
        combined.set_result(futures)
    return combined


def wait_all(futures: list[Future]) -> list[Any]:
    """Waits for several futures and returns their values.

    Args:
        futures: The list. All are waited for, even if one has an error, which is then raised.

    Example:
        >>> future = torch.futures.Future()
        >>> future.set_result(1)
        >>> torch.futures.wait_all([future])
        [1]
    """
    return [future.wait() for future in collect_all(futures).wait()]


__dir__ = make_module_dir(globals())
