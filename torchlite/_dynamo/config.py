"""Settings of PyTorch's compiler (`torch._dynamo.config`), kept for compatibility."""

from .._settings.config_patch import make_patch

cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
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
patch = make_patch(__name__, globals())
