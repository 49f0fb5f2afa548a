"""`functools.cached_property` without a lock, as in Python 3.12 and later.

In earlier versions one lock per property covers all objects. The value is computed under that lock, so a process that
forks meanwhile leaves the child with a lock that is never released.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:
        """A method's result, cached in its object's `__dict__`. Threads that race for the first access get the same
        value.

        >>> from torchlite._settings.cached_property import cached_property
        >>> class Circle:
        ...     radius = 2
        ...
        ...     @cached_property
        ...     def diameter(self):
        ...         return 2 * self.radius
        >>> Circle().diameter
        4
        """

        def __init__(self, function: Any) -> None:
            self.func, self.__doc__ = function, function.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.attrname = name

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            return vars(instance).setdefault(self.attrname, self.func(instance))
