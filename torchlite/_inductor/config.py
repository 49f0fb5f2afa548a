"""Settings of PyTorch's own compiler, for programs that set them: `max_autotune` and `triton.cudagraphs` choose the
mode of functions that are compiled later without one, the others change nothing here.
"""

from types import SimpleNamespace

from .._dynamo.options import defaults
from ..compiler._patching import patching

for _name, _value in defaults().items():
    _group, _, _last = _name.rpartition(".")
    if _group:
        setattr(globals().setdefault(_group, SimpleNamespace()), _last, _value)
    else:
        globals()[_name] = _value
patch = patching(__name__, globals())
