"""What torchlite has in place of libraries that packages compile against PyTorch: the ops of those libraries, by their
schemas, made of torchlite's ops. `torch.ops.load_library` asks here; nothing of it is imported before.
"""

from __future__ import annotations

import importlib
import pathlib
from typing import Any

# By the folder and the name of the library's file: the module here that has its ops in `OPS`, and their library's name.
_KNOWN = {
    ("torchvision", "_C"): ("torchvision.operators", "torchvision"),
    ("torchvision", "image"): ("torchvision.images", "image"),
}
_provided: set[str] = set()


def provide(path: Any) -> bool:
    """Declare the ops of the library that lies at `path`; False where torchlite has nothing in its place."""
    file = pathlib.Path(path)
    known = _KNOWN.get((file.parent.name, file.name.partition(".")[0]))
    if known is None:
        return False
    module, namespace = known
    if module not in _provided:
        from .._library.operators import declare

        for op in importlib.import_module(f"{__name__}.{module}").OPS:
            declared = declare(namespace, op.schema)
            if op.kernel is not None:
                declared.kernels["CompositeExplicitAutograd"] = op.kernel
            declared.backward, declared.setup_context = op.backward, op.setup_context
        _provided.add(module)
    return True
