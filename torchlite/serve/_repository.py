"""The models of a server: loading, reloading and unloading while requests are answered."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import logging
import time
from collections.abc import Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ._batching import BatchLimits, Scheduler
from ._errors import Conflict, InvalidRequest, ServeError, Unavailable, UnknownModel
from ._handler_model import HandlerModel
from ._loading import Files, has_handler, load_model, open_files
from ._metrics import Metrics
from ._model_config import ModelConfig
from ._sources import ModelSource, find_sources, version_order
from ._statistics import StageTimes, Statistics
from ._tensor_model import TensorModel

if TYPE_CHECKING:
    from ._workers import WorkerGroup

_log = logging.getLogger("torchlite.serve")
READY, LOADING, UNLOADING, UNAVAILABLE = "READY", "LOADING", "UNLOADING", "UNAVAILABLE"
UNLOADED = "unloaded"  # the reason of a model that a client unloaded


@dataclass
class Entry:
    """A loaded version of a model with its queue and its figures."""

    name: str
    version: str
    source: ModelSource
    files: Files
    model: TensorModel | HandlerModel
    workers: WorkerGroup | None  # the processes that compute, or threads do
    scheduler: Scheduler
    statistics: Statistics
    created: int = field(default_factory=lambda: int(time.time()))  # seconds since 1970

    @property
    def trouble(self) -> str:
        """Why the version cannot answer now; "" if it can."""
        return "" if self.workers is None else self.workers.trouble

    async def end(self) -> None:
        """End its processes, and delete what was unpacked for it."""
        if self.workers is not None:
            await self.workers.close()
        self.files.close()


@dataclass
class ModelState:
    """All of one model that is loaded, and what the index says of it."""

    entries: dict[str, Entry] = field(default_factory=dict)
    default: str | None = None
    state: str = UNAVAILABLE
    reason: str = "not loaded"
    versions: tuple[str, ...] = ()  # the index's, if none is loaded
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class _Observer:
    """Adds a scheduler's work to the statistics and the metrics."""

    def __init__(self, name: str, version: str, statistics: Statistics, metrics: Metrics) -> None:
        self._statistics, self._metrics = statistics, metrics
        self._name, self._version = name, version

    def on_batch(self, rows: int, waited: Any, times: StageTimes) -> None:
        for seconds in waited:
            self._statistics.stages["queue"].add(seconds)
        self._statistics.add_batch(rows, len(waited), times)
        self._metrics.count_batch(self._name, self._version, rows, waited, times)


class Repository:
    """The models that the command names. All methods belong to the event loop's thread.

    Args:
        words: The command's arguments, `PATH` or `NAME=PATH`.
        defaults: The configuration of models that do not say it themselves.
        tables: The tables `models.NAME` of the server's file of options.
        pool: The threads that compute.
        metrics: The figures of `/metrics`.
        allow_code: Whether handlers and factories may run.
        workers: The most processes of a model that compute; 0 for threads.
        worker_timeout: Seconds without a sign of a call until its process is replaced; 0 for never.
    """

    def __init__(
        self,
        words: Iterable[str],
        defaults: ModelConfig,
        tables: dict[str, dict[str, Any]],
        pool: Executor,
        metrics: Metrics,
        allow_code: bool,
        workers: int = 0,
        worker_timeout: float = 0.0,
    ) -> None:
        self._words = list(words)
        self._defaults, self._tables = defaults, tables
        self._pool, self._metrics, self._allow_code = pool, metrics, allow_code
        self._workers, self._worker_timeout = workers, worker_timeout
        self._loader = ThreadPoolExecutor(1, "torchlite-load")
        self._states: dict[str, ModelState] = {}
        self.started = False

    # -- finding -------------------------------------------------------------------------

    def sources(self) -> dict[str, ModelSource]:
        """Return the models that are in the files and folders now. ValueError for two of one name."""
        found: dict[str, ModelSource] = {}
        for word in self._words:
            for source in find_sources(word, self._defaults, self._tables):
                if source.name in found:
                    raise ValueError(f"two models are named '{source.name}'; name one of them: NAME=PATH")
                found[source.name] = source
        return found

    def find(self, name: str, version: str = "") -> Entry:
        """Return a loaded version of a model, by default the newest or the one that was set as default."""
        state = self._states.get(name)
        if state is None:
            if not self.started:  # a load balancer repeats the request elsewhere
                raise Unavailable("the models are being loaded")
            raise UnknownModel(f"there is no model '{name}'")
        chosen = version or state.default
        entry = state.entries.get(chosen) if chosen else None
        if entry is not None:
            return entry
        if state.reason == UNLOADED:
            raise UnknownModel(f"model '{name}' is not loaded")
        if not state.entries:
            raise Unavailable(f"model '{name}' is not ready: {state.reason}")
        raise UnknownModel(f"model '{name}' has no version '{version}'; loaded are {', '.join(state.entries)}")

    def loaded(self, name: str = "", version: str = "") -> list[Entry]:
        """Return the loaded versions of all models, of one, or one version."""
        if version:
            return [self.find(name, version)]
        names = [name] if name else sorted(self._states)
        if name:
            self.find(name)
        return [e for one in names for _, e in sorted(self._states[one].entries.items(), key=_by_version)]

    def versions(self, name: str) -> list[str]:
        """Return the loaded versions of a model."""
        return sorted(self._states[name].entries, key=version_order)

    def default_version(self, name: str) -> str | None:
        """Return the version that answers requests without one."""
        return self._states[name].default

    @property
    def is_ready(self) -> bool:
        """True once all models of the command were loaded, while none that is wanted is out of service."""
        states = self._states.values()
        if not self.started or not all(s.entries or s.reason == UNLOADED for s in states):
            return False
        return not any(entry.trouble for state in states for entry in state.entries.values())

    def index(self, ready: bool) -> list[dict[str, str]]:
        """Return the protocol's index: all models there are, or those that are ready."""
        found = []
        known = dict(self._states)
        for name, source in self.sources().items():
            known.setdefault(name, ModelState(versions=tuple(source.versions)))
        for name, state in sorted(known.items()):
            if state.entries:
                for version in sorted(state.entries, key=version_order):
                    trouble = state.entries[version].trouble
                    if not (ready and trouble):
                        about = {"state": UNAVAILABLE if trouble else READY, "reason": trouble}
                        found.append({"name": name, "version": version, **about})
            elif not ready:
                for version in state.versions or ("",):
                    found.append({"name": name, "version": version, "state": state.state, "reason": state.reason})
        return found

    # -- changing ------------------------------------------------------------------------

    async def start(self) -> None:
        """Load all models. The first that fails raises its error."""
        for name, source in (await asyncio.to_thread(self.sources)).items():
            await self._load(name, source)
        if not self._states:
            raise ValueError(f"{', '.join(self._words)}: no model is there")
        self.started = True

    async def load(self, name: str) -> list[str]:
        """Load a model anew, or for the first time; return its versions. Requests are answered meanwhile.

        Raises:
            UnknownModel: There is no such model.
            InvalidRequest: It cannot be loaded. What was loaded before goes on.
        """
        try:
            source = (await asyncio.to_thread(self.sources)).get(name)
        except (ValueError, OSError) as error:
            raise InvalidRequest(str(error)) from error
        if source is None:
            raise UnknownModel(f"there is no model '{name}'")
        try:
            await self._load(name, source)
        except ServeError:
            raise
        except Exception as error:  # whatever a model's code raises; the client gets the text
            raise InvalidRequest(f"model '{name}' cannot be loaded: {_text_of(error)}") from error
        return self.versions(name)

    async def register(self, name: str, word: str) -> str:
        """Add a model that the command does not name; return its version. Conflict if the name is taken."""
        if name in self._states and self._states[name].entries:
            raise Conflict(f"model '{name}' is registered already")
        self._words.append(word)
        try:
            return (await self.load(name))[-1]
        except ServeError:
            self._words.remove(word)
            self._states.pop(name, None)
            raise

    async def _load(self, name: str, source: ModelSource) -> None:
        state = self._states.setdefault(name, ModelState())
        async with state.lock:
            if not state.entries:
                state.state, state.reason = LOADING, "loading"
            state.versions = tuple(source.versions)
            fresh: dict[str, Entry] = {}
            try:
                for version in source.chosen_versions():
                    fresh[version] = await self._load_entry(source, version)
            except BaseException as error:
                for entry in fresh.values():
                    await entry.end()
                if not state.entries:
                    state.state, state.reason = UNAVAILABLE, _text_of(error)
                raise
            old, state.entries = state.entries, fresh
            state.default = list(fresh)[-1]
            state.state, state.reason = READY, ""
        for entry in old.values():
            await self._retire(entry)

    async def _load_entry(self, source: ModelSource, version: str) -> Entry:
        loop = asyncio.get_running_loop()
        files = await loop.run_in_executor(self._loader, open_files, source, version)
        workers = None
        try:
            if self._workers:
                workers = self._worker_group(source, version, files)
                model = await workers.start()
            else:
                record = self._metrics.recorder(source.name)
                model = await loop.run_in_executor(
                    self._loader, load_model, source, version, files.path, self._allow_code, record
                )
        except BaseException:
            files.close()
            raise
        config = source.config
        calls = config.workers if workers is None else workers.limits.count
        limits = BatchLimits(config.max_batch, config.delay_ms / 1000, config.max_queue, calls)
        statistics = Statistics()
        observer = _Observer(source.name, version, statistics, self._metrics)
        if workers is None:
            scheduler = Scheduler(model.run, self._pool, limits, observer, model.can_stay)
        else:
            scheduler = Scheduler(workers.run, None, limits, observer)
        _log.info("model %s version %s is loaded", source.name, version)
        return Entry(source.name, version, source, files, model, workers, scheduler, statistics)

    def _worker_group(self, source: ModelSource, version: str, files: Files) -> WorkerGroup:
        from ._workers import Order, WorkerGroup, WorkerLimits

        config = source.config
        limits = WorkerLimits(min(config.workers, self._workers), self._worker_timeout)
        preload = config.preload
        if preload is None:
            preload = config.device == "cpu" and not has_handler(source, files.path)
        # In its process each worker is the only one.
        alone = dataclasses.replace(source, config=dataclasses.replace(config, workers=1))
        order = Order(alone, version, files.path, self._allow_code, preload, limits.threads)
        deaths = self._metrics.worker_deaths.labels(source.name, version)
        return WorkerGroup(order, limits, self._metrics.recorder(source.name), deaths.inc)

    async def unload(self, name: str, version: str = "") -> None:
        """Unload a model, or one of its versions. Requests that it has get their answers first."""
        state = self._states.get(name)
        if state is None or not state.entries:
            raise UnknownModel(f"there is no model '{name}' that is loaded")
        if version and version not in state.entries:
            raise UnknownModel(f"model '{name}' has no version '{version}'")
        async with state.lock:
            gone = [version] if version else list(state.entries)
            old = [state.entries.pop(one) for one in gone if one in state.entries]
            if state.entries:
                if state.default not in state.entries:
                    state.default = sorted(state.entries, key=version_order)[-1]
            else:
                state.default, state.state, state.reason = None, UNAVAILABLE, UNLOADED
        for entry in old:
            await self._retire(entry)

    async def _retire(self, entry: Entry) -> None:
        await entry.scheduler.close()
        await entry.end()
        if gc.get_freeze_count():  # by `ServerProcess`: the version must not stay in memory
            gc.unfreeze()

    def set_default(self, name: str, version: str) -> None:
        """Let a version answer the requests that name none."""
        self._states[self.find(name, version).name].default = version

    async def close(self) -> None:
        """Answer what waits, and give all models free. What is not answered when this is cancelled gets an error."""
        entries = [entry for state in self._states.values() for entry in state.entries.values()]
        try:
            await asyncio.gather(*(entry.scheduler.close() for entry in entries))
        finally:
            await asyncio.gather(*(entry.end() for entry in entries))
            self._loader.shutdown(wait=False, cancel_futures=True)


def _by_version(pair: tuple[str, Any]) -> tuple:
    return version_order(pair[0])


def _text_of(error: BaseException) -> str:
    return " ".join(str(error).split())[:500] or type(error).__name__
