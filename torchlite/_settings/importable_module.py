"""Base of the classes of modules with more behaviour than a plain one."""

from __future__ import annotations

import importlib
import types
from typing import Any


class ImportableModule(types.ModuleType):
    """Module that is pickled by its name: cloudpickle, which Ray uses, does so with plain modules only."""

    def __reduce__(self) -> Any:
        return importlib.import_module, (self.__name__,)
