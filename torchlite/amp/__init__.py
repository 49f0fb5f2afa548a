"""Mixed precision: `autocast` chooses the dtype of each op, `GradScaler` prevents underflow of float16 gradients."""

from torchlite._settings.module_dir import make_module_dir

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


__dir__ = make_module_dir(globals())
