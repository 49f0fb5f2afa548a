"""Record how PyTorch's parser takes the arguments of the ops that torchlite has: torchlite/_dispatch/signatures.txt.

usage: python tools/record_signatures.py

It needs the extra `oracle` and PyYAML. PyTorch's wheel brings the declarations of its ops and what makes the parser's
signatures of them; recorded are those of the public functions, of methods, of methods that write in place, and of
functions that are no records (`parsed`).
A line is a public name and its signatures in the order in which they are tried, deprecated ones last.
"""

from __future__ import annotations

import collections
import pathlib
import re
import sys
import types
from typing import Any

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

PATH = ROOT / "torchlite" / "_dispatch" / "signatures.txt"
NAMES = {
    "c10::List<::std::optional<Tensor>>": "Tensor?s",
    "ArrayRef<double>": "floats",
    "c10::string_view": "str",
    "SymIntArrayRef": "ints",
    "IntArrayRef": "ints",
    "MemoryFormat": "memory_format",
    "TensorList": "Tensors",
    "ScalarList": "Numbers",
    "ScalarType": "dtype",
    "DeviceIndex": "int",
    "Generator": "generator",
    "Scalar": "Number",
    "SymInt": "int",
    "int64_t": "int",
    "Storage": "storage",
    "double": "float",
    "Layout": "layout",
    "Device": "device",
    "Stream": "stream",
}
# Functions whose parsers are written by hand.
_TO = "bool non_blocking=False, bool copy=False, *, memory_format? memory_format=None"
BY_HAND = {
    "Tensor.nonzero": ["*, bool as_tuple=False"],
    "Tensor.to": [f"device? device=None, dtype? dtype=None, {_TO}", f"dtype dtype, {_TO}", f"Tensor tensor, {_TO}"],
    "get_device": ["Tensor input"],
    "nonzero": ["Tensor input, *, bool as_tuple=False, Tensor out=None"],
}
SPACES = {"torch": "", "nn": "nn.functional.", "fft": "fft.", "linalg": "linalg.", "special": "special."}


def shorter(signature: str) -> str:
    """A signature of the parser with this project's names of types; "deprecated" stays at its end."""
    inside, _, flag = signature[signature.index("(") + 1 :].rpartition(")")
    for theirs, ours in NAMES.items():
        inside = re.sub(rf"(?<![\w:]){re.escape(theirs)}(?![\w:])", ours, inside)
    return inside + flag


def declared() -> dict[str, list[str]]:
    """{public name: signatures} of all that PyTorch's parser is made for."""
    import torchgen
    from torchgen.gen import parse_native_yaml
    from torchgen.packaged.autograd import gen_python_functions as made

    data = pathlib.Path(torchgen.__file__).parent / "packaged"
    native = data / "ATen/native"
    functions = parse_native_yaml(str(native / "native_functions.yaml"), str(native / "tags.yaml")).native_functions
    functions = [f for f in functions if made.should_generate_py_binding(f)]
    found: dict[str, list[str]] = {}
    for method, spaces in ((False, SPACES), (True, {"variable": "Tensor."})):
        pairs = made.load_signatures(functions, str(data / "autograd/deprecated.yaml"), method=method)
        for space, prefix in spaces.items():
            wanted = getattr(made, f"is_py_{space}_{'method' if method else 'function'}")
            groups = collections.defaultdict(list)
            for pair in pairs:
                if wanted(pair.function):
                    groups[str(pair.function.func.name.name)].append(pair)
            for name, group in groups.items():
                texts = [g.signature.signature_str(symint=True) for g in made.group_overloads(group, symint=True)]
                texts.sort(key=lambda text: text.endswith("deprecated"))
                found[prefix + name.removeprefix(f"{space}_")] = [shorter(text) for text in texts]
    return found


def main() -> None:
    import torch

    import torchlite
    from torchlite._dispatch import NAMESPACES

    def found(home: Any, public: str) -> Any:
        for part in public.split("."):
            home = getattr(home, part, None)
        return home

    signatures, lines = {**declared(), **BY_HAND}, []
    in_c = (types.BuiltinFunctionType, types.MethodDescriptorType)
    for space, names in sorted(NAMESPACES.items()):
        prefix = "" if space == "torch" else space + "."
        for name in sorted(names):
            public, is_method = prefix + name, space == "Tensor"
            if public in signatures and isinstance(found(torch, public), in_c):
                lines.append(f"{public}: {' | '.join(signatures[public])}")
            if is_method and f"{public}_" in signatures and hasattr(torch.Tensor, f"{name}_"):
                lines.append(f"{public}_: {' | '.join(signatures[f'{public}_'])}")
    for public, texts in sorted(signatures.items()):  # those of `parsed` functions
        if "_foreach_" in public or public in BY_HAND or hasattr(found(torchlite, public), "parsed_as"):
            lines.append(f"{public}: {' | '.join(texts)}")
    PATH.write_text("\n".join(dict.fromkeys(lines)) + "\n")
    print(f"{len(lines)} lines, {PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
