"""Start a function or a program in several processes from Python, as `torchlite-run` does from a shell."""

from . import api as api
from .api import LaunchConfig, elastic_launch, launch_agent

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]
