"""`python -m tests.jit.record`, with PyTorch installed, writes `pytorch_archives.zip`: PyTorch's TorchScript files.

For each model of the list its archive (without the ranges of sources, which nothing needs) traced, scripted or
frozen, and what PyTorch answers; and samples of the language (`samples.py`) with their answers.
"""

from __future__ import annotations

import io
import pathlib
import warnings
import zipfile

import numpy as np

PATH = pathlib.Path(__file__).with_name("pytorch_archives.zip")
FROZEN = ("lenet", "resnet", "lstm", "transformer", "gpt", "unet")


def stripped(data: bytes) -> bytes:
    """An archive without what only debuggers read."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            if not info.filename.endswith(".debug_pkl") and "traced_inputs" not in info.filename:
                new.writestr(zipfile.ZipInfo(info.filename), old.read(info), info.compress_type)
    return out.getvalue()


def saved(torch, module) -> bytes:
    """The bytes of `torch.jit.save`."""
    out = io.BytesIO()
    torch.jit.save(module, out)
    return stripped(out.getvalue())


def leaves(value) -> list:
    """The tensors of an answer."""
    if isinstance(value, (tuple, list)):
        return [leaf for one in value for leaf in leaves(one)]
    return [value] if hasattr(value, "shape") else []


def main() -> None:
    import torch

    from ..graph_models import MODELS
    from . import samples

    warnings.simplefilter("ignore")
    with zipfile.ZipFile(PATH, "w", zipfile.ZIP_DEFLATED) as archive:

        def put(name: str, module, answer) -> None:
            archive.writestr(f"{name}.pt", saved(torch, module))
            arrays = io.BytesIO()
            np.savez(arrays, *[leaf.detach().numpy() for leaf in leaves(answer)])
            archive.writestr(f"{name}.npz", arrays.getvalue())

        for number, (name, one) in enumerate(MODELS.items()):
            inputs = one.inputs(torch)
            made = one.make(torch)
            with torch.no_grad():
                answer = made(*inputs)
            if not one.scripts:  # has control flow that PyTorch itself does not trace
                continue
            if number % 2 == 0:
                put(f"{name}.scripted", torch.jit.script(made), answer)
            else:
                put(f"{name}.traced", torch.jit.trace(made, inputs, check_trace=False), answer)
            if name in FROZEN and one.scripts:
                put(f"{name}.frozen", torch.jit.freeze(torch.jit.script(made)), answer)
        for name, (module, inputs) in samples.build(torch).items():
            scripted = torch.jit.script(module)
            archive.writestr(f"sample.{name}.pt", saved(torch, scripted))
            archive.writestr(f"sample.{name}.txt", repr(samples.plain(scripted(*inputs))))


if __name__ == "__main__":
    main()
