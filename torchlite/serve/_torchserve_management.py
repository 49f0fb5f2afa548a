"""What TorchServe's management API does, for HTTP and gRPC."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ._errors import Conflict, InvalidRequest, UnknownModel
from ._handler_model import HandlerModel
from ._protocol import check_model_name
from ._repository import Entry
from ._service import Service
from ._sources import SUFFIXES, read_manifest

PAGE = 100  # models of a list's page


def list_models(service: Service, limit: int, start: int) -> dict[str, Any]:
    """Return a page of the models that are loaded."""
    every = list({entry.name: entry for entry in service.repository.loaded()}.values())
    page = every[start : start + limit]
    made: dict[str, Any] = {"models": [{"modelName": e.name, "modelUrl": _url_of(e)} for e in page]}
    if start + limit < len(every):
        made["nextPageToken"] = str(start + limit)
    return made


def describe_model(service: Service, name: str, version: str) -> list[dict[str, Any]]:
    """Return the state of a version of a model, or of all for `all`."""
    repository = service.repository
    entries = repository.loaded(name) if version == "all" else [repository.find(name, version)]
    return [_describe(repository.default_version(name), entry) for entry in entries]


def _url_of(entry: Entry) -> str:
    path = entry.source.versions[entry.version]
    return path.name if path is not None else str(entry.source.config.factory or entry.source.config.handler)


def _describe(default: str | None, entry: Entry) -> dict[str, Any]:
    limits = entry.scheduler.limits
    return {
        "modelName": entry.name,
        "modelVersion": entry.version,
        "modelUrl": _url_of(entry),
        "engine": "torchlite",
        "runtime": "python",
        "minWorkers": limits.workers,
        "maxWorkers": limits.workers,
        "batchSize": limits.max_batch,
        "maxBatchDelay": limits.delay * 1000,
        "loadedAtStartup": True,
        "defaultVersion": entry.version == default,
        "workers": _workers_of(entry),
        "jobQueueStatus": {
            "remainingCapacity": max(limits.max_queue - entry.scheduler.queue_length, 0),
            "pendingRequests": entry.scheduler.queue_length,
        },
    }


def _workers_of(entry: Entry) -> list[dict[str, Any]]:
    gpu = entry.source.config.device.startswith("cuda")
    if entry.workers is None:
        return [{"id": str(number), "status": "READY", "gpu": gpu} for number in range(entry.scheduler.limits.workers)]
    return [{"id": str(number), "pid": number, "status": "READY", "gpu": gpu} for number in entry.workers.processes]


async def register_model(
    service: Service, url: str, name: str, workers: int, batch_size: int | None, delay_ms: int | None
) -> str:
    """Load a model that is in the folder of models, by its file's name; return what was done."""
    service.check_management()
    path = _stored(service, url)
    name = check_model_name(name or await asyncio.to_thread(_name_of, path))
    limits: dict[str, Any] = {} if batch_size is None else {"max_batch": batch_size}
    if delay_ms is not None:
        limits["delay"] = delay_ms / 1000
    repository = service.repository
    if name in repository.sources():
        if name in {entry.name for entry in repository.loaded()}:
            raise Conflict(f"model '{name}' is registered already")
        version = (await repository.load(name))[-1]
    else:
        version = await repository.register(name, f"{name}={path}")
    for entry in repository.loaded(name):
        entry.scheduler.limits = dataclasses.replace(entry.scheduler.limits, **limits)
    if workers > 1:
        _scale(service, repository.loaded(name), workers)
    return f'Model "{name}" Version: {version} registered with {max(workers, 1)} initial workers'


def _stored(service: Service, url: str) -> Path:
    """Return the path of a model's file in one of the folders that the server was started with."""
    if not url:
        raise InvalidRequest("the parameter 'url' is missing: the name of a file in the folder of models")
    if urlsplit(url).scheme or "/" in url or "\\" in url or url.startswith("."):
        raise InvalidRequest("'url' must be the name of a file in the folder of models; the server downloads nothing")
    for word in service.settings.models:
        path = Path(word) / url
        if Path(word).is_dir() and path.suffix.lower() in SUFFIXES and path.is_file():
            return path
    raise UnknownModel(f"there is no file '{url}' in the folder of models")


def _name_of(path: Path) -> str:
    try:
        return read_manifest(path)["model"].get("modelName", path.stem) if path.suffix == ".mar" else path.stem
    except ValueError as error:
        raise InvalidRequest(str(error)) from None


def scale_workers(service: Service, name: str, version: str, least: int, most: int) -> str:
    """Set how many calls of a model run at the same time; return what was done."""
    service.check_management()
    if most < least:
        raise InvalidRequest("'max_worker' must be at least 'min_worker'")
    _scale(service, [service.repository.find(name, version)], least)
    suffix = f", version: {version}" if version else ""
    return f"Workers scaled to {least} for model: {name}{suffix}"


def _scale(service: Service, entries: list[Entry], workers: int) -> None:
    kind = "workers" if service.settings.workers else "threads"
    most = getattr(service.settings, kind)
    if workers > most:
        raise InvalidRequest(f"the server has {most} {kind}; start it with more (--{kind})")
    for entry in entries:
        if isinstance(entry.model, HandlerModel) and workers > 1 and entry.workers is None:
            raise InvalidRequest("a handler has one call at a time; its workers must be 1")
        entry.scheduler.limits = dataclasses.replace(entry.scheduler.limits, workers=workers)
        if entry.workers is not None:
            entry.workers.resize(workers)


async def unregister_model(service: Service, name: str, version: str) -> str:
    """Unload a model, or one of its versions; return what was done."""
    service.check_management()
    await service.repository.unload(name, version)
    return f'Model "{name}" unregistered'


def set_default(service: Service, name: str, version: str) -> str:
    """Let a version answer the requests that name none; return what was done."""
    service.check_management()
    service.repository.set_default(name, version)
    return f'Default version successfully updated for model "{name}" to "{version}"'
