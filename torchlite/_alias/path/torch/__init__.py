"""torchlite under the name `torch`. `python -m torchlite as-torch --remove` uninstalls it."""

HANDS_OVER = True  # so that `as_torch` takes this module's place

from torchlite import as_torch

as_torch()
