"""PyTorch's programmatic launcher module, for packages that import it."""

from .api import LaunchConfig as LaunchConfig
from .api import elastic_launch as elastic_launch
