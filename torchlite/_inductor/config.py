"""Settings of PyTorch's own compiler, for programs that set them: `max_autotune` and `triton.cudagraphs` choose the
mode of functions that are compiled later without one, the others change nothing here.
"""

import sys
from types import SimpleNamespace

from .._dynamo.compile_options import default_options
from .._settings.compiler_state import PROCESS_STATE
from .._settings.config_patch import make_patch

for _name, _value in default_options().items():
    _group, _, _last = _name.rpartition(".")
    if _group:
        setattr(globals().setdefault(_group, SimpleNamespace()), _last, _value)
    else:
        globals()[_name] = _value
patch = make_patch(__name__, globals())
PROCESS_STATE.inductor_config = sys.modules[__name__]
