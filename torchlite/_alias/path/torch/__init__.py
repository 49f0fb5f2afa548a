"""torchlite under PyTorch's name. `python -m torchlite as-torch --remove` takes it away where it was installed."""

HANDS_OVER = True  # so that `as_torch` takes this module's place

from torchlite import as_torch

as_torch()
