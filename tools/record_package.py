"""Record a package of PyTorch's `torch.package`, in tests/package.

    python tools/record_package.py

It needs torch 2.13.0.
"""

import json
import sys
import tempfile
import textwrap
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "tests" / "package"
SOURCES = {
    "models/__init__.py": "LOADED = []\n",
    "models/parts.py": """
        import math

        import torch


        class Scale(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.factor = torch.nn.Parameter(torch.tensor(2.0))

            def forward(self, x):
                return math.sqrt(4.0) * self.factor * x
        """,
    "models/net.py": """
        import collections.abc
        from collections import OrderedDict

        import torch
        import torch.nn.functional as F

        import models
        from . import parts
        from .parts import Scale

        models.LOADED.append(__name__)


        class Net(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = torch.nn.Sequential(OrderedDict(first=torch.nn.Linear(3, 4), scale=parts.Scale()))

            def forward(self, x):
                return F.relu(self.layers(x))


        def fails():
            raise ValueError("from the package")
        """,
}


def write_package(net: torch.nn.Module, script: torch.nn.Module, graph: torch.nn.Module) -> None:
    shared = torch.arange(6.0)
    with torch.package.PackageExporter(FOLDER / "written_by_pytorch.pt") as exporter:
        exporter.extern(["torch.**", "collections.**", "math"])
        exporter.intern("models.**")
        exporter.save_pickle("data", "weights", {"a": shared, "b": shared[2:4], "half": torch.ones(2).half(), "n": 3})
        exporter.save_pickle("data", "net", net)
        exporter.save_pickle("data", "script", [script, script.weight, script])
        exporter.save_pickle("data", "graph", graph)
        exporter.save_text("data", "notes", "Größe\n")
        exporter.save_binary("data", "bytes", b"\x00\xff")
        exporter.save_module("models.net")


torch.package.package_exporter._gate_torchscript_serialization = False


def main() -> None:
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in SOURCES.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(textwrap.dedent(text).lstrip("\n"))
        sys.path.insert(0, folder)
        import models.net

        net = models.net.Net().eval()
        script = torch.jit.script(torch.nn.Linear(3, 2))
        graph = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh()))
        write_package(net, script, graph)
        x = torch.linspace(-1, 1, 6).reshape(2, 3)
        answers = {name: module(x).tolist() for name, module in (("net", net), ("script", script), ("graph", graph))}
        importer = torch.package.PackageImporter(FOLDER / "written_by_pytorch.pt")
        answers["structure"] = str(importer.file_structure(include="**/*.py")).partition("\n")[2]
        (FOLDER / "answers.json").write_text(json.dumps(answers, indent=1) + "\n")


main()
