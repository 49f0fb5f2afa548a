"""Internals of DataLoader: fetching, collating, pinning, worker processes."""

from . import collate, fetch, pin_memory, worker

MP_STATUS_CHECK_INTERVAL = worker.MP_STATUS_CHECK_INTERVAL

__all__ = ["MP_STATUS_CHECK_INTERVAL", "collate", "fetch", "pin_memory", "worker"]
