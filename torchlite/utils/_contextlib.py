"""Context managers that are decorators too, as `no_grad` is; packages derive theirs from them."""

from __future__ import annotations

from typing import Any

from ..autograd.grad_mode import _DecoratorContextManager

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager"]


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """Made without arguments: `@name` decorates as `@name()` does."""

    def __new__(cls, orig_func: Any = None) -> Any:
        if orig_func is None:
            return super().__new__(cls)
        return cls()(orig_func)
