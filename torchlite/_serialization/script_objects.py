"""Objects of classes that PyTorch's library defines, as checkpoints have them: a `torch.ScriptObject` with a state."""

from __future__ import annotations

import pickle
from typing import Any

from .._dispatch.callbacks import CALLBACKS


class ScriptObjectInFile:
    """A `torch.ScriptObject` of a checkpoint. A state makes it an object of the class that the state names."""

    def __setstate__(self, state: Any) -> None:
        if type(state) is not tuple or len(state) != 2 or type(state[1]) is not str:
            raise pickle.UnpicklingError("the state of a ScriptObject is no pair with the name of a class")
        values, name = state
        if not CALLBACKS.quantized("is_object_class")(name):
            raise pickle.UnpicklingError(f"torchlite has no class {name[:200]}")
        made = CALLBACKS.quantized("rebuild_object")(name, values)
        self.__class__ = type(made)
        self.__dict__.update(vars(made))
