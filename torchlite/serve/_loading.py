"""Loads one version of a model: by what its file is, and by its configuration."""

from __future__ import annotations

import inspect
import math
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import torchlite as torch
from torchlite._cli.models.model_loader import Model, Value, read
from torchlite._serialization.file_formats import detect_file_format

from . import _archives, _code, _wire
from ._errors import InvalidRequest
from ._handler_context import Context, HandlerMetrics, Record
from ._handler_model import HandlerModel, load_handler
from ._model_config import ModelConfig
from ._protocol import InferRequest, TensorSpec
from ._sources import MANIFEST, ModelSource, read_manifest
from ._tensor_model import TensorModel
from ._text_model import TextModel, is_text_model
from ._weights import read_weights

PLATFORMS = {"onnx": "onnx_onnxv1", "torchscript": "pytorch_torchscript", "pt2": "pytorch_export"}
# Handlers of TorchServe's own that do nothing but call the network: such an archive needs no code.
_PLAIN_HANDLERS = ("base_handler", "base_handler.py")


@dataclass
class Files:
    """The files of a version: an archive's are unpacked into a folder that `close` deletes."""

    path: Path | None
    scratch: Path | None = None

    def close(self) -> None:
        """Delete what was unpacked."""
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)


def open_files(source: ModelSource, version: str) -> Files:
    """Return the files of a version of a model. ValueError or OSError for a wrong archive."""
    path = source.versions[version]
    if path is None or path.is_dir() or path.suffix.lower() != ".mar":
        return Files(path)
    scratch = Path(tempfile.mkdtemp(prefix="torchlite-serve-"))
    try:
        _archives.unpack(path, scratch)
    except BaseException:
        shutil.rmtree(scratch, ignore_errors=True)
        raise
    return Files(scratch, scratch)


def has_handler(source: ModelSource, path: Path | None) -> bool:
    """True if a handler's code answers for a model, whose files lie at `path`."""
    if path is None or not path.is_dir():
        return bool(source.config.handler)
    return not _is_plain(source, read_manifest(path)["model"])


def _is_plain(source: ModelSource, about: dict[str, Any]) -> bool:
    """True for an archive whose handler does nothing but call the network of a file."""
    handler = source.config.handler or about.get("handler", "")
    return handler in _PLAIN_HANDLERS and not about.get("modelFile") and bool(about.get("serializedFile"))


def load_model(
    source: ModelSource, version: str, path: Path | None, allow_code: bool, record: Record
) -> TensorModel | HandlerModel:
    """Load a version of a model, whose files lie at `path`, and call it once.

    Raises:
        ValueError, OSError: A file or the configuration is wrong.
        Exception: Whatever the model's code raises.
    """
    if path is not None and path.is_dir():
        return _load_archive(source, path, allow_code, record)
    if source.config.handler:
        manifest = {"model": {"modelName": source.name, "modelVersion": version, "handler": source.config.handler}}
        if path is not None:
            manifest["model"]["serializedFile"] = str(path.relative_to(source.folder))
        return _load_handler(source, source.folder, manifest, allow_code, record)
    return _load_tensor_model(source, path, allow_code)


def _load_archive(source: ModelSource, folder: Path, allow_code: bool, record: Record) -> TensorModel | HandlerModel:
    manifest = read_manifest(folder)
    about = manifest["model"]
    handler = source.config.handler or about.get("handler", "")
    if _is_plain(source, about):
        return _load_tensor_model(source, folder / about["serializedFile"], allow_code)
    manifest = {**manifest, "model": {**about, "handler": handler}}
    return _load_handler(source, folder, manifest, allow_code, record)


def _load_handler(
    source: ModelSource, folder: Path, manifest: dict[str, Any], allow_code: bool, record: Record
) -> HandlerModel:
    word = manifest["model"]["handler"]
    if not word:
        raise ValueError(f"{folder / MANIFEST}: it names no handler")
    if not allow_code:
        raise _code.CodeNotAllowed(f"the handler '{word}' of model '{source.name}'")
    from torchlite import __torchlite_version__

    config = source.config
    if word in _PLAIN_HANDLERS:
        from . import _torchserve_names  # here: most servers have no handler

        context = _context(source, folder, manifest, record, __torchlite_version__)
        handler = _torchserve_names.BaseHandler()
        with _code.imports_from(folder):
            handler.initialize(context)
        return HandlerModel(handler.handle, context, folder)
    if config.workers > 1:
        raise ValueError(f"model '{source.name}': a handler has one call at a time; workers must be 1")
    return load_handler(word, folder, _context(source, folder, manifest, record, __torchlite_version__))


def _context(source: ModelSource, folder: Path, manifest: dict, record: Record, version: str) -> Context:
    config = source.config
    return Context(
        source.name, str(folder), manifest, config.max_batch, config.device, HandlerMetrics(record),
        dict(config.options), version,
    )  # fmt: skip


def _load_tensor_model(source: ModelSource, path: Path | None, allow_code: bool) -> TensorModel:
    config = source.config
    if config.factory:
        made = _make_by_factory(source, path, allow_code)
    elif path is None:
        raise ValueError(f"model '{source.name}': no file and no factory")
    elif path.suffix.lower() == ".safetensors" or detect_file_format(str(path)) == "checkpoint":
        raise ValueError(f"{path}: weights without a program; name what makes the module: --factory module:function")
    else:
        made = _of_file(read(str(path), config.device), config)
    _check_batching(source, made)
    warm_up(made, config.warmup)
    return made


def _of_file(model: Model, config: ModelConfig) -> TensorModel:
    if isinstance(model.module, torch.nn.Module):
        model.module.eval() if model.kind == "torchscript" else None
    inputs = config.inputs or tuple(_spec_of(value) for value in model.inputs)
    outputs = config.outputs or tuple(_spec_of(value) for value in model.outputs)
    free = _first_sizes_are_one_name([*model.inputs, *model.outputs])
    can_batch = free if config.batching is None else config.batching
    return TensorModel(
        model.module, PLATFORMS[model.kind], list(inputs), list(outputs), config.device, can_batch, config.padding
    )


def _spec_of(value: Value) -> TensorSpec:
    shape = None if value.shape is None else tuple(size if isinstance(size, int) else -1 for size in value.shape)
    return TensorSpec(value.name, None if value.dtype is None else _wire.datatype_of(value.dtype), shape)


def _first_sizes_are_one_name(values: list[Value]) -> bool:
    """True if all inputs and outputs begin with one free size of the same name: their rows."""
    firsts = {value.shape[0] if value.shape else None for value in values}
    return len(firsts) == 1 and isinstance(next(iter(firsts)), str)


def _make_by_factory(source: ModelSource, path: Path | None, allow_code: bool) -> TensorModel:
    config = source.config
    assert config.factory is not None
    if not allow_code:
        raise _code.CodeNotAllowed(f"the factory '{config.factory}' of model '{source.name}'")
    from . import _torchserve_names

    _torchserve_names.install()
    with _code.imports_from(source.folder):
        module = _code.load_factory(config.factory, source.folder)
        if not callable(module) and not is_text_model(module):
            raise ValueError(f"factory '{config.factory}': it made a {type(module).__name__}, which cannot be called")
        if path is not None:
            if not hasattr(module, "load_state_dict"):
                raise ValueError(f"factory '{config.factory}': it made no module that takes the weights of {path}")
            module.load_state_dict(read_weights(path))
    if isinstance(module, torch.nn.Module):
        module = module.to(config.device).eval()
    if is_text_model(module):
        return _text_model_of(source, module)
    forward = getattr(module, "forward", module)
    inputs = config.inputs or tuple(TensorSpec(name) for name in _parameters_of(forward))
    return TensorModel(
        module, "pytorch_eager", list(inputs), list(config.outputs), config.device, bool(config.batching),
        config.padding, is_code=True, streams=inspect.isgeneratorfunction(forward),
    )  # fmt: skip


def _text_model_of(source: ModelSource, module: Any) -> TextModel:
    config = source.config
    for key in ("inputs", "outputs", "padding", "batching"):
        if getattr(config, key):
            raise ValueError(f"model '{source.name}': a model of text takes no '{key}'")
    try:
        return TextModel(module, config.device)
    except ValueError as error:
        raise ValueError(f"factory '{config.factory}': {error}") from None


def _parameters_of(function: Any) -> list[str]:
    """Return the names of a function's parameters without a default."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [one.name for one in parameters if one.kind in kinds and one.default is inspect.Parameter.empty]


def _check_batching(source: ModelSource, model: TensorModel) -> None:
    if source.config.padding is None:
        return
    known = {spec.name for spec in model.inputs}
    for name in source.config.padding.inputs:
        if known and name not in known:
            raise ValueError(
                f"model '{source.name}': padding names '{name}'; its inputs are {', '.join(sorted(known))}"
            )
    if not model.can_batch:
        raise ValueError(f"model '{source.name}': padding is for joined requests; say batching = true")


def warm_up(model: TensorModel, calls: int, rows: int = 1, seconds: float = math.inf) -> None:
    """Call a model with zeros, where it says what its inputs are, so that the first answer is not the slowest.

    Args:
        model: The model.
        calls: The number of calls.
        rows: The size of free sizes, such as the number of rows.
        seconds: Of processor time, after which no further call begins.
    """
    end = time.process_time() + seconds
    if model.streams or not all(spec.datatype and spec.shape is not None for spec in model.inputs) or not model.inputs:
        return
    shapes = [[rows if size < 0 else size for size in spec.shape or ()] for spec in model.inputs]
    if any(spec.datatype == "BYTES" for spec in model.inputs):
        return
    zeros = {
        spec.name: np.zeros(shape, _wire.DTYPES[str(spec.datatype)])
        for spec, shape in zip(model.inputs, shapes, strict=True)
    }
    for _ in range(calls):
        if time.process_time() > end:
            return
        try:
            model.run([InferRequest(zeros)])
        except InvalidRequest:  # zeros are not among what the model takes
            return
