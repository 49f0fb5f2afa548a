"""`functools.cached_property` without a lock, as it is from Python 3.12 on.

Before, a property has one lock for all objects. Its value is made under that lock, so a process that forks meanwhile
has a child in which nobody opens it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property
else:

    class cached_property:
        """A method's result, kept in its object's `__dict__`. Threads that ask first at the same time get one value.

        >>> from torchlite._settings.cached import cached_property
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


__all__ = ["cached_property"]
