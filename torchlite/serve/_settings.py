"""Options of `torchlite serve`: one table for flags, environment and file."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from ._model_config import ModelConfig

PREFIX = "TORCHLITE_SERVE_"  # of variables of the environment
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_MEBIBYTE = 1 << 20


def _option(default: Any, about: str, least: float | None = None) -> Any:
    return field(default=default, metadata={"help": about, "least": least})


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Options of a server. `docs/howto/serve.md` explains them.

    Example:
        >>> from torchlite.serve import Settings
        >>> Settings(models=("net.onnx",), max_batch=8).port
        8000
    """

    models: tuple[str, ...] = ()
    tables: Mapping[str, dict[str, Any]] = field(default_factory=dict)  # `[models.NAME]` of the file
    host: str = _option("127.0.0.1", "address that the server listens on")
    port: int = _option(8000, "port of HTTP; 0 takes a free one", 0)
    grpc_port: int = _option(8001, "port of gRPC; 0 takes a free one, -1 switches gRPC off", -1)
    device: str = _option("cpu", "device of models that name none")
    workers: int = _option(0, "processes of each model that compute; 0 computes in threads of the server", 0)
    worker_timeout: float = _option(0.0, "seconds until a worker that does not answer is replaced; 0 waits on", 0)
    threads: int = _option(1, "threads that compute, without workers", 1)
    max_batch: int = _option(1, "rows that are joined to one call", 1)
    delay_ms: float = _option(0.0, "milliseconds that a request waits for others to join it", 0)
    max_queue: int = _option(128, "requests of a model that wait; further ones get status 429", 1)
    timeout: float = _option(60.0, "seconds until a request without a deadline gets status 504", 0.001)
    max_body_mb: float = _option(64.0, "largest body of a request, in MiB", 0.001)
    max_bodies_mb: float = _option(512.0, "largest sum of bodies at one time, in MiB", 0.001)
    max_connections: int = _option(1024, "connections at one time; further ones get status 503", 1)
    drain: float = _option(30.0, "seconds that requests have to end after SIGTERM", 0)
    drain_delay: float = _option(0.0, "seconds after SIGTERM until no further request is taken", 0)
    factory: str = _option("", "`module:function` that makes the network of a file of weights")
    allow_code: bool = _option(False, "run handlers and factories, the code of models")
    token: str = _option("", "token that requests must have: `Authorization: Bearer TOKEN`")
    token_file: str = _option("", "file with the token")
    public: bool = _option(False, "listen beyond this machine without a token")
    management: bool = _option(True, "load, unload and register models by requests")
    tls_cert: str = _option("", "file with the certificate")
    tls_key: str = _option("", "file with the certificate's key")
    access_log: bool = _option(True, "write a line of JSON for each request to standard output")

    def __post_init__(self) -> None:
        for one in option_fields():
            value, least = getattr(self, one.name), one.metadata["least"]
            if least is not None and not least <= value < float("inf"):
                raise ValueError(f"{one.name}: {value} is not at least {least}")
        if self.port > 65535 or self.grpc_port > 65535:
            raise ValueError("a port is at most 65535")
        if bool(self.tls_cert) != bool(self.tls_key):
            raise ValueError("tls_cert and tls_key must be given together")
        if self.token and self.token_file:
            raise ValueError("give token or token_file, not both")
        if self.host not in _LOOPBACK and not (self.token or self.token_file or self.public):
            raise ValueError(
                f"host {self.host} can be reached from other machines: give a token (token_file), or say public"
            )

    def check_workers(self) -> None:
        """Raise ValueError for options that have no effect, with worker processes or without them."""
        if self.workers and self.threads > 1:
            raise ValueError("threads are of a server without workers: give workers or threads")
        if self.worker_timeout and not self.workers:
            raise ValueError("worker_timeout is of worker processes: give workers too")
        if self.workers and sys.platform != "linux":
            raise ValueError("workers need Linux")

    @property
    def is_local(self) -> bool:
        """True if only this machine reaches the server."""
        return self.host in _LOOPBACK

    @property
    def max_body(self) -> int:
        """Bytes of the largest body."""
        return int(self.max_body_mb * _MEBIBYTE)

    @property
    def max_bodies(self) -> int:
        """Bytes of all bodies at one time."""
        return int(self.max_bodies_mb * _MEBIBYTE)

    def model_defaults(self) -> ModelConfig:
        """Return the configuration of models that do not say it themselves."""
        return ModelConfig(
            factory=self.factory or None, device=self.device, max_batch=self.max_batch, delay_ms=self.delay_ms,
            max_queue=self.max_queue, workers=max(self.workers, 1),
        )  # fmt: skip

    def read_token(self) -> str:
        """Return the token; "" for none. ValueError for an empty file."""
        if not self.token_file:
            return self.token
        token = Path(self.token_file).read_text(encoding="utf-8").strip()
        if not token:
            raise ValueError(f"{self.token_file}: it holds no token")
        return token


def option_fields() -> list[Field]:
    """Return the fields that are options of the command."""
    return [one for one in fields(Settings) if "help" in one.metadata]


def make_settings(
    models: list[str], flags: Mapping[str, Any], config: str | None, environment: Mapping[str, str] = os.environ
) -> Settings:
    """Return the settings of the flags, else of the environment, else of the file, else the defaults.

    Args:
        models: The models of the command line; without any, those of the file.
        flags: The options that the command line has.
        config: A TOML file with the options' names as keys, `models` and tables `[model.NAME]`; None for no file.
        environment: Variables such as `TORCHLITE_SERVE_PORT`.

    Raises:
        ValueError: An unknown key, or a wrong value.
        OSError: The file cannot be read.
    """
    values = _read_file(config) if config else {}
    for one in option_fields():
        name = PREFIX + one.name.upper()
        if name in environment:
            values[one.name] = _parse(one, environment[name], name)
    known = {PREFIX + one.name.upper() for one in option_fields()} | {PREFIX + "CONFIG"}
    for name in environment:
        if name.startswith(PREFIX) and name not in known:
            raise ValueError(f"unknown variable {name}; known are {', '.join(sorted(known))}")
    values |= flags
    if models:
        values["models"] = tuple(models)
    return Settings(**values)


def _read_file(path: str) -> dict[str, Any]:
    import tomllib  # here: most servers have no such file

    try:
        table = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    known = {one.name: one for one in option_fields()}
    made: dict[str, Any] = {}
    for key, value in table.items():
        if key == "models" and isinstance(value, list) and all(isinstance(word, str) for word in value):
            made["models"] = tuple(value)
        elif key == "model" and isinstance(value, dict) and all(isinstance(t, dict) for t in value.values()):
            made["tables"] = value
        elif key in known:
            made[key] = _check_type(known[key], value, f"{path}: {key}")
        else:
            raise ValueError(f"{path}: unknown key '{key}'; known are models, model, {', '.join(known)}")
    return made


def kind_of(one: Field) -> type:
    """Return the type of an option."""
    assert one.default is not MISSING
    return type(one.default)


def _check_type(one: Field, value: Any, where: str) -> Any:
    kind = kind_of(one)
    if kind is float and type(value) is int:
        return float(value)
    if type(value) is not kind:
        words = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
        raise ValueError(f"{where} must be {words[kind]}")
    return value


def _parse(one: Field, word: str, where: str) -> Any:
    """Return the value of a variable of the environment."""
    kind = kind_of(one)
    if kind is bool:
        if word.lower() not in ("1", "0", "true", "false"):
            raise ValueError(f"{where}: wanted is 1 or 0, not '{word}'")
        return word.lower() in ("1", "true")
    try:
        return kind(word)
    except ValueError:
        raise ValueError(f"{where}: '{word}' is no {'whole number' if kind is int else 'number'}") from None
