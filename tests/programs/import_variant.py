"""The same program with another import: `twin("seed_program", torch)` is the module that uses `torch`."""

import types
from pathlib import Path


def twin(name: str, torch) -> types.ModuleType:
    """A program of this folder run with PyTorch: its source with `import torchlite as torch` replaced by `import
    torch`, and nothing else changed.
    """
    path = Path(__file__).with_name(f"{name}.py")
    source = path.read_text()
    changed = source.replace("import torchlite as torch", "import torch")
    assert changed != source and "torchlite" not in changed
    module = types.ModuleType(f"{name}_in_{torch.__name__}")
    exec(compile(changed, str(path), "exec"), module.__dict__)
    return module
