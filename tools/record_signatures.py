"""Record how PyTorch's parser takes the arguments of the ops that torchlite has: torchlite/_dispatch/signatures.txt.

usage: python tools/record_signatures.py

It needs the extra `oracle` and PyYAML. PyTorch's wheel brings the declarations of its ops and what makes the parser's
signatures of them; recorded are those of the public functions, and of methods that are no functions or write in place.
A line is a public name and its signatures in the order in which they are tried, deprecated ones last.
"""

from __future__ import annotations

import collections
import pathlib
import re
import sys
import types

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

    import torchlite  # noqa: F401
    from torchlite._dispatch import NAMESPACES

    signatures, lines = declared(), []
    for space, names in sorted(NAMESPACES.items()):
        prefix = "" if space == "torch" else space + "."
        for name, op in sorted(names.items()):
            public, is_method = prefix + name, space == "Tensor"
            found = torch
            for part in public.split("."):
                found = getattr(found, part, None)
            in_c = isinstance(found, (types.BuiltinFunctionType, types.MethodDescriptorType))
            if public in signatures and in_c and not (is_method and NAMESPACES["torch"].get(name) is op):
                lines.append(f"{public}: {' | '.join(signatures[public])}")
            if is_method and f"{public}_" in signatures and hasattr(torch.Tensor, f"{name}_"):
                lines.append(f"{public}_: {' | '.join(signatures[f'{public}_'])}")
    lines += [f"{name}: {' | '.join(texts)}" for name, texts in sorted(signatures.items()) if "_foreach_" in name]
    PATH.write_text("\n".join(dict.fromkeys(lines)) + "\n")
    print(f"{len(lines)} lines, {PATH.stat().st_size} bytes")


if __name__ == "__main__":
    main()
