"""Settings of `torch.save` and `torch.load`: `config`."""

from . import config as config
