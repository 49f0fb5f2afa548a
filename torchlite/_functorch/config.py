"""Settings of `torch._functorch.config`, kept for compatibility; nothing is recomputed, so they have no effect."""

from .._settings.config_patch import make_patch

activation_memory_budget = 1.0
aggressive_recomputation = False
ban_recompute_reductions = True
donated_buffer = False
enable_autograd_cache = True
functionalize_rng_ops = False
recompute_views = False
treat_parameters_as_free_to_save = True
patch = make_patch(__name__, globals())
