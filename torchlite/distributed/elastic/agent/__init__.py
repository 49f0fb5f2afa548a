"""The agent of a machine, which watches its processes."""

from . import server as server
