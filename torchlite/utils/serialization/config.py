"""Defaults of `torch.save` and `torch.load`.

>>> from torchlite.utils.serialization import config
>>> config.load.mmap, config.save.compute_crc32, config.save.storage_alignment
(False, True, 64)
"""

from ..._serialization.save_load_options import load, save

__all__ = ["load", "save"]
