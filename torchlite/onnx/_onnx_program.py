"""ONNXProgram: an exported model, to save and run."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torchlite as torch
from torchlite import Tensor
from torchlite._serialization.atomic_files import replace_file
from torchlite.utils import _pytree as pytree

from ._protobuf import Message, encode_message
from .errors import OnnxExporterError

_LARGEST = (1 << 31) - (1 << 24)  # maximum bytes of one message; protobuf's limit is 2 GB
_SMALL = 1024  # maximum bytes of a tensor stored in the model file
_ALIGNED = 64


class ONNXProgram:
    """An ONNX model together with the exported program that it was made from.

    `torch.onnx.export` returns it. A call runs the model.

    Args:
        model: Message with the fields of ONNX's ModelProto.
        exported_program: The `torch.export.ExportedProgram`. Default: ``None``.

    Example:
        >>> import torchlite as torch
        >>> program = torch.onnx.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),))
        >>> program(torch.ones(4, 3))[0].shape
        torch.Size([4, 2])
        >>> program
        ONNXProgram(inputs: input; outputs: linear_gemm; 1 nodes, opset 20)
    """

    def __init__(self, model: Message, exported_program: Any = None) -> None:
        self._model, self.exported_program = model, exported_program
        self._run: Any = None

    def __repr__(self) -> str:
        graph = self._model.graph
        inputs, outputs = (", ".join(info.name for info in part) for part in (graph.input, graph.output))
        return (
            f"ONNXProgram(inputs: {inputs}; outputs: {outputs}; {len(graph.node)} nodes, opset "
            f"{next(entry.version for entry in self._model.opset_import if not entry.domain)})"
        )

    @property
    def model(self) -> Message:
        """Return the model as a message with the fields of ONNX's ModelProto."""
        return self._model

    @property
    def model_proto(self) -> Any:
        """Return the model as the onnx package's ModelProto; the package must be installed."""
        try:
            import onnx
        except ImportError:
            raise ImportError("ONNXProgram.model_proto needs the package onnx: pip install onnx") from None
        return onnx.load_model_from_string(self.to_bytes())

    def to_bytes(self) -> bytes:
        """Return the serialized model. Raise OnnxExporterError above 2 GB, where weights need a file."""
        if _encoded_size(self._model) > _LARGEST:
            raise OnnxExporterError("the model has more than 2 GB: save it with external_data=True")
        return b"".join(encode_message(self._model))

    def save(
        self, destination: Any, *, include_initializers: bool = True, keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:  # fmt: skip
        """Writes the model to a path or binary file.

        Args:
            destination: A path, or a binary file open for writing.
            include_initializers: Whether the file has the weights. Default: ``True``.
            keep_initializers_as_inputs: Whether the weights are listed as inputs too. Default: ``False``.
            external_data: Whether larger tensors go to a second file with the suffix ``.data``. Default: only above 2
                GB. No effect without a path.

        Raises:
            OnnxExporterError: The model has more than 2 GB, and ``destination`` is not a path.
        """
        model = self._model
        if not include_initializers:
            model = _replace_graph_fields(model, initializer=[])
        if keep_initializers_as_inputs:
            have = {info.name for info in model.graph.input}
            rest = [_describe_tensor(t) for t in model.graph.initializer if t.name not in have]
            model = _replace_graph_fields(model, input=[*model.graph.input, *rest])
        if not isinstance(destination, (str, os.PathLike)):
            destination.write(ONNXProgram(model).to_bytes())
            return
        path = os.fspath(destination)
        if external_data or _encoded_size(model) > _LARGEST:
            model = _with_external_data(model, path)
        with replace_file(path, plain=True) as stream:
            for piece in encode_message(model):
                stream.write(piece)

    def apply_weights(self, state_dict: Mapping[str, Tensor]) -> None:
        """Replaces weights of the model by name.

        Args:
            state_dict: Tensors by name. Names that the model lacks are ignored.

        Raises:
            ValueError: A tensor has another shape or dtype than the model's.
        """
        from ._export.graph_builder import make_tensor
        from ._export.program_to_model import as_array

        new = []
        for old in self._model.graph.initializer:
            if old.name in state_dict:
                array, dtype = as_array(state_dict[old.name])
                replaced = make_tensor(old.name, array, dtype)
                if list(array.shape) != list(old.dims) or replaced.data_type != old.data_type:
                    raise ValueError(f"{old.name}: a tensor of shape {list(array.shape)} in the place of {old.dims}")
                old = replaced
            new.append(old)
        self._model = _replace_graph_fields(self._model, initializer=new)
        self._run = None

    def optimize(self) -> None:
        """Do nothing: the export has removed unused nodes."""

    def initialize_inference_session(self, initializer: Callable[[Any], Any] | None = None) -> None:
        """Makes the session that calls use.

        Args:
            initializer: Function of the model's bytes that returns a session with onnxruntime's methods. Default:
                onnxruntime's session on the CPU.
        """
        if initializer is None:
            import onnxruntime

            self._run = onnxruntime.InferenceSession(self.to_bytes(), providers=["CPUExecutionProvider"])
        else:
            self._run = initializer(self.to_bytes())

    def release(self) -> None:
        """Release the session."""
        self._run = None

    def __call__(self, *args: Any, **kwargs: Any) -> Sequence[Any]:
        """Return the model's outputs, by onnxruntime if installed, else by `torch.onnx.load`."""
        if self._run is None and importlib.util.find_spec("onnxruntime") is not None:
            self.initialize_inference_session()
        if self._run is None:
            return self.call_reference(*args, **kwargs)
        values: Any = _flatten_inputs(args, kwargs)
        feeds = {
            info.name: _to_array(value) if isinstance(value, Tensor) else value
            for info, value in zip(self._run.get_inputs(), values, strict=False)
        }
        return tuple(torch.from_numpy(array) for array in self._run.run(None, feeds))

    def call_reference(self, *args: Any, **kwargs: Any) -> Sequence[Any]:
        """Returns the model's outputs, computed by `torch.onnx.load`.

        Args:
            *args: Inputs of the model.
            **kwargs: Further inputs, in the order of the model.
        """
        from ._load import build_module
        from ._protobuf import parse_message

        with torch.no_grad():
            data = b"".join(encode_message(self._model))
            found = build_module(parse_message(data), len(data))(*_flatten_inputs(args, kwargs))
        return found if isinstance(found, tuple) else (found,)


def _flatten_inputs(args: tuple, kwargs: dict) -> list[Any]:
    values = pytree.tree_leaves((args, kwargs))
    return [value for value in values if isinstance(value, Tensor)]


def _encoded_size(model: Message) -> int:
    return sum(memoryview(piece).nbytes for piece in encode_message(model))


def _replace_graph_fields(model: Message, **fields: Any) -> Message:
    """Return a model with some graph fields replaced."""
    graph = Message("Graph", **{**model.graph._set, **fields})
    return Message("Model", **{**model._set, "graph": graph})


def _describe_tensor(tensor: Message) -> Message:
    dims = [Message("Dimension", dim_value=n) for n in tensor.dims]
    about = Message("TypeOfTensor", elem_type=tensor.data_type, shape=Message("TensorShape", dim=dims))
    return Message("ValueInfo", name=tensor.name, type=Message("Type", tensor_type=about))


def _with_external_data(model: Message, path: str) -> Message:
    """Write larger tensors to an external file and return the model that refers to it; without any the model itself."""
    if all(memoryview(tensor.raw_data).nbytes <= _SMALL for tensor in model.graph.initializer):
        return model
    name = f"{os.path.basename(path)}.data"
    kept, offset = [], 0
    with replace_file(os.path.join(os.path.dirname(path), name), plain=True) as stream:
        for tensor in model.graph.initializer:
            length = memoryview(tensor.raw_data).nbytes
            if length <= _SMALL:
                kept.append(tensor)
                continue
            gap = -offset % _ALIGNED
            stream.write(bytes(gap))
            stream.write(tensor.raw_data)
            offset += gap
            about = {"location": name, "offset": str(offset), "length": str(length)}
            offset += length
            fields = {key: value for key, value in tensor._set.items() if key != "raw_data"}
            entries = [Message("StringString", key=key, value=value) for key, value in about.items()]
            kept.append(Message("Tensor", **fields, data_location=1, external_data=entries))
    return _replace_graph_fields(model, initializer=kept)


def _to_array(value: Any) -> Any:
    """A tensor's elements as a NumPy array of its dtype, which may be one of ml_dtypes."""
    return value.detach().cpu()._host_array()
