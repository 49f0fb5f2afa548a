"""The programs of `cold_start.py`, which runs this file under each library's interpreter.

`python cold_start_cases.py CASE LIBRARY PATH` loads a model's file, computes its first result, and prints as one line:
the milliseconds of import, of loading and of the first call, the number of loaded modules, the peak of resident memory
in megabytes (0 where the system does not tell it), and the result's first number.
"""

from __future__ import annotations

import importlib
import itertools
import sys
import time
from collections.abc import Callable
from typing import Any

FEATURES, WIDTH, CLASSES = 32, 128, 8
# MiniLM's sizes: vocabulary, width, heads, layers, the inner width, tokens of a text.
VOCABULARY, HIDDEN, HEADS, LAYERS, INNER, TOKENS = 30522, 384, 12, 6, 1536, 32
SILERO_RATE = 16000
SILERO_STATE = (2, 1, 128)
Call = Callable[[], Any]


def mlp(torch: Any) -> Any:
    """A network of 22,000 parameters."""
    nn = torch.nn
    return nn.Sequential(
        nn.Linear(FEATURES, WIDTH), nn.ReLU(), nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Linear(WIDTH, CLASSES)
    )


def encoder(torch: Any) -> Any:
    """A transformer of MiniLM's sizes."""
    nn = torch.nn

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.words, self.norm = nn.Embedding(VOCABULARY, HIDDEN), nn.LayerNorm(HIDDEN)
            layer = nn.TransformerEncoderLayer(HIDDEN, HEADS, INNER, activation="gelu", batch_first=True)
            self.layers = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False)

        def forward(self, tokens: Any) -> Any:
            return self.layers(self.norm(self.words(tokens))).mean(1)

    return Encoder()


def state_dict(torch: Any, path: str) -> Call:
    """`load_state_dict` of a small network."""
    model = mlp(torch)
    model.load_state_dict(torch.load(path))
    model.eval()
    return lambda: model(torch.ones(1, FEATURES))


def torchscript(torch: Any, path: str) -> Call:
    model = torch.jit.load(path)
    return lambda: model(torch.ones(1, FEATURES))


def onnx(library: Any, path: str) -> Call:
    if library.__name__ == "onnxruntime":
        session = library.InferenceSession(path, providers=["CPUExecutionProvider"])
        numpy: Any = importlib.import_module("numpy")
        return lambda: session.run(None, {"x": numpy.ones((1, FEATURES), numpy.float32)})[0]
    model = library.onnx.load(path)
    return lambda: model(library.ones(1, FEATURES))


def silero_torchscript(torch: Any, path: str) -> Call:
    model = torch.jit.load(path)
    return lambda: model(torch.zeros(1, 512), SILERO_RATE)


def silero_onnx(library: Any, path: str) -> Call:
    """Its samples begin with 64 of the part before."""
    if library.__name__ == "onnxruntime":
        session = library.InferenceSession(path, providers=["CPUExecutionProvider"])
        np: Any = importlib.import_module("numpy")
        names = [i.name for i in session.get_inputs()]
        given = np.zeros((1, 576), np.float32), np.zeros(SILERO_STATE, np.float32), np.array(SILERO_RATE)
        return lambda: session.run(None, dict(zip(names, given, strict=True)))[0]
    model = library.onnx.load(path)
    return lambda: model(library.zeros(1, 576), library.zeros(SILERO_STATE), library.tensor(SILERO_RATE))[0]


def safetensors(torch: Any, path: str) -> Call:
    """The package safetensors gives a state dict, which a module without weights takes."""
    if torch.__name__ == "torchlite":
        torch = torch.as_torch()
    load_file = importlib.import_module("safetensors.torch").load_file
    with torch.device("meta"):
        model = encoder(torch)
    model.load_state_dict(load_file(path), assign=True)
    model.eval()
    return lambda: model(torch.arange(TOKENS)[None])


def exported(torch: Any, path: str) -> Call:
    model = torch.export.load(path).module()
    return lambda: model(torch.ones(1, 3, 224, 224))


CASES: dict[str, Callable[[Any, str], Call]] = {
    "mlp.pt": state_dict,
    "mlp.onnx": onnx,
    "mlp.ts": torchscript,
    "silero_vad.onnx": silero_onnx,
    "silero_vad.jit": silero_torchscript,
    "minilm.safetensors": safetensors,
    "mobilenet.pt2": exported,
}


def peak_memory() -> float:
    """Megabytes that this process had resident at most. Linux's `ru_maxrss` counts the process before `exec` too."""
    if sys.platform == "linux":
        with open("/proc/self/status", encoding="ascii") as status:
            return next(int(line.split()[1]) * 1.024e-3 for line in status if line.startswith("VmHWM:"))
    try:
        resource: Any = importlib.import_module("resource")
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1e6 if sys.platform == "darwin" else 1e3)


def main(case: str, library: str, path: str) -> None:
    """Measure one case, and print the line."""
    times = [time.perf_counter()]
    module = importlib.import_module(library)
    times.append(time.perf_counter())
    run = CASES[case](module, path)
    times.append(time.perf_counter())
    if library == "onnxruntime":
        first = float(run().flat[0])
    else:
        with module.no_grad():
            first = float(run().numpy().flat[0])
    times.append(time.perf_counter())
    parts = [f"{(after - before) * 1e3:.2f}" for before, after in itertools.pairwise(times)]
    print(*parts, len(sys.modules), f"{peak_memory():.1f}", repr(first), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
