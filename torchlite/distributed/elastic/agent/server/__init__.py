"""The agent that watches the processes of a machine. `local_elastic_agent` has the one that starts processes."""

from . import api as api
from . import local_elastic_agent as local_elastic_agent
from .api import ElasticAgent, RunResult, SimpleElasticAgent, Worker, WorkerGroup, WorkerSpec, WorkerState

__all__ = ["ElasticAgent", "RunResult", "SimpleElasticAgent", "Worker", "WorkerGroup", "WorkerSpec", "WorkerState"]
