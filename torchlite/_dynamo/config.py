"""Settings of PyTorch's compiler (`torch._dynamo.config`), kept for compatibility."""

from .._settings.config_patch import add_aliases, make_patch

recompile_limit = 8
accumulated_recompile_limit = 256
error_on_recompile = False
suppress_errors = False
fail_on_recompile_limit_hit = False
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
_aliases = {
    "cache_size_limit": "recompile_limit",
    "accumulated_cache_size_limit": "accumulated_recompile_limit",
    "fail_on_cache_limit_hit": "fail_on_recompile_limit_hit",
}
patch = make_patch(__name__, globals(), _aliases)
add_aliases(__name__)
