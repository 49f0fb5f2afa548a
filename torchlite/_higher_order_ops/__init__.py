"""Higher-order ops: cond, while_loop, map, scan and associative_scan, run by Python outside captures."""

from .associative_scan import associative_scan
from .cond import cond
from .foreach_map import foreach_map
from .map import map
from .scan import scan
from .while_loop import while_loop

__all__ = ["associative_scan", "cond", "foreach_map", "map", "scan", "while_loop"]
