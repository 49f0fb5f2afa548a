"""Exceptions that are re-raised in another thread or process."""

from __future__ import annotations

from typing import Any


class KeyErrorMessage(str):
    """A string whose repr is itself: KeyError shows the repr of its argument, which would escape the line breaks of a
    traceback.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """An exception with its traceback as text, to be raised again in another thread or process.

    exc_info: an exception, or the result of `sys.exc_info()`; by default the exception being handled. where: the
    origin, for the message.
    """

    def __init__(self, exc_info: Any = None, where: str = "in background"):
        import sys
        import traceback

        if exc_info is None:
            exc_info = sys.exc_info()
        error = exc_info if isinstance(exc_info, BaseException) else exc_info[1]
        self.exc_type, self.where = type(error), where
        self.exc_msg = "".join(traceback.format_exception(error))

    def reraise(self):
        """Raise an exception of the same type with the original traceback in its message."""
        message = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            raise KeyError(KeyErrorMessage(message))
        try:
            error = self.exc_type(message)
        except Exception:  # the user's exception may need other arguments
            raise RuntimeError(message) from None
        raise error
