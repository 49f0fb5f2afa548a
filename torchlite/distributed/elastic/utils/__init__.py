"""Helpers of agents: variables, free ports, stores, loggers, and samplers that continue in an epoch's middle."""

from . import distributed as distributed
from . import log_level as log_level
from . import logging as logging
from . import store as store
from .api import get_env_variable_or_raise, get_socket_with_port, macros

__all__ = ["get_env_variable_or_raise", "get_socket_with_port", "macros"]
