"""What watches the processes of a machine."""

from . import server as server
