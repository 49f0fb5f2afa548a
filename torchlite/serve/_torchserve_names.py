"""The modules of TorchServe that handlers import: `ts.torch_handler.base_handler` and few others, made here."""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torchlite as torch
from torchlite._alias import as_torch

from ._archives import load_serialized
from ._handler_context import Context


class BaseHandler:
    """Base class of handlers: loads TorchScript, ONNX, `.pt2`, or a state dict with the archive's model file.

    A subclass overrides `initialize`, `preprocess`, `inference`, `postprocess` or `handle`.
    """

    def __init__(self) -> None:
        self.model: Any = None
        self.mapping: dict[str, Any] | None = None
        self.device: Any = None
        self.initialized = False
        self.context: Any = None
        self.model_pt_path: str | None = None
        self.manifest: Any = None
        self.map_location: str | None = None
        self.explain = False
        self.target = 0
        self.model_yaml_config: dict[str, Any] = {}

    def initialize(self, context: Any) -> None:
        """Load the archive's model."""
        properties = context.system_properties
        self.context, self.manifest = context, context.manifest
        self.model_yaml_config = context.model_yaml_config or {}
        self.map_location = context.device
        self.device = torch.device(context.device)
        folder = properties["model_dir"]
        about = self.manifest["model"]
        if about.get("serializedFile"):
            self.model_pt_path = os.path.join(folder, about["serializedFile"])
        self.model = load_serialized(folder, about, context.device)
        names = os.path.join(folder, "index_to_name.json")
        if os.path.isfile(names):
            with open(names, encoding="utf-8") as file:
                self.mapping = json.load(file)
        self.initialized = True

    def preprocess(self, data: Any) -> Any:
        """Return the tensor of a list of inputs."""
        return torch.as_tensor(data, device=self.device)

    def inference(self, data: Any, *args: Any, **kwargs: Any) -> Any:
        """Return the model's result."""
        with torch.inference_mode():
            return self.model(data.to(self.device), *args, **kwargs)

    def postprocess(self, data: Any) -> list:
        """Return a list with the answer to each request."""
        return data.tolist()

    def handle(self, data: list, context: Any) -> list:
        """Return the answers to a list of requests."""
        self.context, self.explain = context, context.explains
        given = self.preprocess(data)
        return self.explain_handle(given, data) if self.explain else self.postprocess(self.inference(given))

    def explain_handle(self, data_preprocess: Any, raw_data: list) -> Any:
        """Return the explanations of predictions: `get_insights` of the inputs, of the first request and its target."""
        row = raw_data[0] if isinstance(raw_data[0], dict) else {}
        given = row.get("data") or row.get("body")
        return self.get_insights(data_preprocess, given, row.get("target") or self.target)

    def get_insights(self, tensor_data: Any, raw_data: Any, target: Any) -> Any:
        """Return a list with an explanation for each request. A subclass overrides it."""
        raise NotImplementedError(f"{type(self).__name__} has no get_insights, which explains predictions")


def send_intermediate_predict_response(
    ret: list, req_id_map: Any, message: str, code: int, context: Context | None = None
) -> None:
    """Send a part of each answer before the whole is ready. `req_id_map`, `message` and `code` have no effect: the
    context knows its requests, and the status was sent before the first part.
    """
    if context is None:
        raise ValueError("send_intermediate_predict_response: the argument context is missing")
    context.send_parts(ret)


def _modules() -> dict[str, dict[str, Any]]:
    sends: dict[str, Callable] = {"send_intermediate_predict_response": send_intermediate_predict_response}
    return {
        "ts": {},
        "ts.context": {"Context": Context},
        "ts.handler_utils": {},
        "ts.handler_utils.utils": sends,
        "ts.protocol": {},
        "ts.protocol.otf_message_handler": sends,
        "ts.torch_handler": {},
        "ts.torch_handler.base_handler": {"BaseHandler": BaseHandler},
    }


def install() -> None:
    """Let `import torch` mean torchlite, and `import ts` these modules unless TorchServe is installed."""
    as_torch()
    if "ts" in sys.modules or importlib.util.find_spec("ts") is not None:
        return
    made = {name: ModuleType(name) for name in _modules()}
    for name, content in _modules().items():
        vars(made[name]).update(content)
        made[name].__path__ = []  # a package
        parent, _, last = name.rpartition(".")
        if parent:
            setattr(made[parent], last, made[name])
    sys.modules.update(made)
