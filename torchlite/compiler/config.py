"""Settings of PyTorch's compiler (`torch.compiler.config`), kept for compatibility."""

from __future__ import annotations

from typing import Any

from torchlite._settings.module_dir import make_module_dir

from .._settings.config_patch import make_patch

job_id: Any = None
pgo_extra_read_key: Any = None
pgo_extra_write_key: Any = None
cache_key_tag = ""
force_disable_caches = False
dynamic_sources = ""
dynamic_values = ""
unbacked_sources = ""
force_cudagraph_gc = False
patch = make_patch(__name__, globals())


__dir__ = make_module_dir(globals())
