"""The file `config.toml` of a model: how it is loaded and called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from ._protocol import TensorSpec
from ._tensor_model import Padding
from ._wire import DTYPES

FILE_NAME = "config.toml"


@dataclass(frozen=True)
class ModelConfig:
    """What `config.toml` can say of a model; the server's options give the defaults."""

    factory: str | None = None  # `module:function` that makes the module; needs --allow-code
    handler: str | None = None  # `module` or `module:function` of TorchServe's kind; needs --allow-code
    device: str = "cpu"
    max_batch: int = 1  # rows that are joined to one call
    delay_ms: float = 0.0  # that the oldest request waits for others
    max_queue: int = 128  # requests that wait; further ones get status 429
    workers: int = 1  # calls at the same time
    batching: bool | None = None  # whether rows are independent; None: as the file says
    versions: str | tuple[str, ...] = "latest"  # or "all", or a list
    warmup: int = 1  # calls before the model is ready
    preload: bool | None = None  # worker processes share what was loaded before they began; None: without a handler
    inputs: tuple[TensorSpec, ...] = ()  # where the file does not say them
    outputs: tuple[TensorSpec, ...] = ()
    padding: Padding | None = None
    options: Mapping[str, Any] = field(default_factory=dict)  # a handler's `context.model_yaml_config`


def read_config(path: Path, defaults: ModelConfig) -> ModelConfig:
    """Return the configuration of a file. ValueError that names the file if it is wrong."""
    import tomllib  # here: most servers have no such file

    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path}: {error}") from None
    return config_of(table, defaults, str(path))


def config_of(table: dict[str, Any], defaults: ModelConfig, where: str) -> ModelConfig:
    """Return the configuration of a table. ValueError for an unknown key or a wrong value."""
    known = {one.name for one in fields(ModelConfig)}
    for key in table:
        if key not in known:
            raise ValueError(f"{where}: unknown key '{key}'; known are {', '.join(sorted(known))}")
    try:
        return replace(defaults, **{key: _value_of(key, value) for key, value in table.items()})
    except (TypeError, ValueError) as error:
        raise ValueError(f"{where}: {error}") from None


_WHOLE = ("max_batch", "max_queue", "workers")


def _value_of(key: str, value: Any) -> Any:
    if key in ("inputs", "outputs"):
        if not isinstance(value, list):
            raise ValueError(f"{key} must be a list of tables")
        return tuple(_spec_of(key, about) for about in value)
    if key == "padding":
        return _padding_of(value)
    if key == "versions":
        return _versions_of(value)
    if key in _WHOLE and (type(value) is not int or value < 1):
        raise ValueError(f"{key} must be a whole number of at least 1")
    if key == "warmup" and (type(value) is not int or value < 0):
        raise ValueError("warmup must be a whole number of at least 0")
    if key == "delay_ms" and (type(value) not in (int, float) or not 0 <= value <= 60_000):
        raise ValueError("delay_ms must be a number from 0 to 60000")
    if key in ("batching", "preload") and type(value) is not bool:
        raise ValueError(f"{key} must be true or false")
    if key in ("factory", "handler", "device") and type(value) is not str:
        raise ValueError(f"{key} must be a text")
    if key == "options" and type(value) is not dict:
        raise ValueError("options must be a table")
    return value


def _versions_of(value: Any) -> str | tuple[str, ...]:
    if value in ("latest", "all"):
        return value
    if isinstance(value, list) and value and all(type(one) in (int, str) for one in value):
        return tuple(str(one) for one in value)
    raise ValueError("versions must be 'latest', 'all' or a list of versions")


def _spec_of(key: str, about: Any) -> TensorSpec:
    if not isinstance(about, dict) or set(about) - {"name", "datatype", "shape"} or type(about.get("name")) is not str:
        raise ValueError(f"each of {key} must be a table with a name, and at will a datatype and a shape")
    datatype, shape = about.get("datatype"), about.get("shape")
    if datatype is not None and datatype not in DTYPES:
        raise ValueError(f"{key}: unknown datatype {datatype!r}; known are {', '.join(DTYPES)}")
    if shape is not None and not (isinstance(shape, list) and all(type(n) is int and n >= -1 for n in shape)):
        raise ValueError(f"{key}: a shape must be a list of sizes, -1 for a free one")
    return TensorSpec(about["name"], datatype, None if shape is None else tuple(shape))


def _padding_of(value: Any) -> Padding:
    if not isinstance(value, dict) or set(value) - {"axis", "inputs", "outputs"}:
        raise ValueError("padding must be a table with axis, inputs and outputs")
    axis, inputs, outputs = value.get("axis"), value.get("inputs"), value.get("outputs", [])
    if type(axis) is not int or axis < 1:
        raise ValueError("padding.axis must be a whole number of at least 1")
    if not isinstance(inputs, dict) or not inputs or not all(type(n) in (int, float, bool) for n in inputs.values()):
        raise ValueError("padding.inputs must be a table of inputs and the numbers that fill them up")
    if not isinstance(outputs, list) or not all(type(name) is str for name in outputs):
        raise ValueError("padding.outputs must be a list of names")
    return Padding(axis, dict(inputs), tuple(outputs))
