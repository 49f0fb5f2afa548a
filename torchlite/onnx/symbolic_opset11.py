"""ONNX's ops of version 11, which programs name while they describe theirs: nothing is exported yet."""

from __future__ import annotations

from typing import Any


def _refuse(g: Any, *args: Any, **kwargs: Any) -> Any:
    raise NotImplementedError("torch.onnx.symbolic_opset11: torchlite does not export models to ONNX yet")


add = mul = squeeze = unsqueeze = select = _refuse
