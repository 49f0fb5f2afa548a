"""Starting processes from a program, by the name that packages import."""

from .api import LaunchConfig as LaunchConfig
from .api import elastic_launch as elastic_launch
