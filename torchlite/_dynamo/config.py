"""Settings of PyTorch's compiler, for programs that set them."""

import contextlib
from collections.abc import Iterator
from typing import Any

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
suppress_errors = False
disable = False
verbose = False
capture_scalar_outputs = False
capture_dynamic_output_shape_ops = False
assume_static_by_default = True
automatic_dynamic_shapes = True
dynamic_shapes = True
guard_nn_modules = True
optimize_ddp = True
inline_inbuilt_nn_modules = True
allow_unspec_int_on_nn_module = False


@contextlib.contextmanager
def patch(changes: Any = None, value: Any = None, **more: Any) -> Iterator[None]:
    """Within this (or a function that it decorates) settings are others: `patch("verbose", True)`,
    `patch({"verbose": True})` or `patch(verbose=True)`. AttributeError for a setting that there is not.
    """
    wanted = {changes: value} if isinstance(changes, str) else {**(changes or {}), **more}
    settings = globals()
    for name in wanted:
        if name not in settings:
            raise AttributeError(f"{__name__}.{name} does not exist")
    before = {name: settings[name] for name in wanted}
    settings.update(wanted)
    try:
        yield
    finally:
        settings.update(before)
