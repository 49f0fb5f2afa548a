"""Distributed optimizers: DistributedOptimizer, ZeroRedundancyOptimizer, PostLocalSGDOptimizer."""

from torchlite._settings.module_dir import make_module_dir

from .optimizer import DistributedOptimizer
from .post_localSGD_optimizer import PostLocalSGDOptimizer
from .zero_redundancy_optimizer import ZeroRedundancyOptimizer

__all__ = ["DistributedOptimizer", "PostLocalSGDOptimizer", "ZeroRedundancyOptimizer"]


__dir__ = make_module_dir(globals())
