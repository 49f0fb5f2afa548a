"""Worker process that runs workloads under one module: prints rows, or with `--serve` answers JSON requests."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
import time
from typing import Any

from .context import Context, Rows
from .network_file import describe_replays, measure_loading
from .timing import measure
from .workload_names import file_of, select_rows, workloads_of


class Session:
    """One module, and the current workload."""

    def __init__(self, module: str, device: str, scale: float, threads: int, onednn: str = ""):
        start = time.perf_counter()
        self.T: Any = importlib.import_module(module)
        self.seconds_to_import = time.perf_counter() - start
        self.module = module
        if hasattr(self.T, "set_num_threads"):
            self.T.set_num_threads(threads)
        if onednn:
            mkldnn = self.T.backends.mkldnn
            if onednn == "on" and not mkldnn.is_available():
                raise RuntimeError("oneDNN was not found (python -m torchlite info says why)")
            mkldnn.set_flags(onednn == "on")
        self.context = Context(self.T, device, scale)
        self.rows: Rows = iter(())
        self.call: Any = None
        self.threads = threads

    def describe_session(self) -> dict[str, Any]:
        T, numpy = self.T, sys.modules.get("numpy")
        ours, engine = hasattr(T, "__torchlite_version__"), ""
        if ours and self.context.device == "cpu":
            mkldnn = T.backends.mkldnn
            dnn = mkldnn.enabled and mkldnn.is_available()
            engine = T.backends.cpu.get_kernel_engine() + ("+onednn" if dnn else "")
        return {
            "import": self.seconds_to_import,
            "version": str(getattr(T, "__torchlite_version__", getattr(T, "__version__", ""))),
            "torchlite": ours,
            "folder": os.path.dirname(os.path.abspath(T.__file__)),
            "python": sys.version.split()[0],
            "numpy": numpy.__version__ if numpy else "",
            "engine": engine,
        }

    def make(self, workload: str) -> None:
        """Start a workload; `advance` returns its rows."""
        file = file_of(workload, self.module)
        if file is None:
            self.rows = iter(())
            return
        if hasattr(self.T, "manual_seed"):
            self.T.manual_seed(0)
        self.rows = getattr(importlib.import_module("." + file, __package__), workload)(self.context)

    def advance(self) -> str:
        """Return the next row's name; empty after the last."""
        name, self.call = next(self.rows, ("", None))
        return name

    def load(self, request: dict) -> dict[str, float]:
        """Load the network of a file; `measure` times its call."""
        self.call, figures = measure_loading(self.context, request, self.threads)
        return figures

    def measure(self, seconds: float, least: int = 3) -> dict[str, float]:
        return measure(self.call, self.context.wait, seconds, least)


def peak_memory() -> float:
    """Return the process's peak memory in MiB; 0 if unknown."""
    try:
        import resource
    except ImportError:
        return 0.0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10)


def _answer_request(session: Session, request: dict) -> dict[str, Any]:
    if "make" in request:
        session.make(request["make"])
        return {}
    if "measure" in request:
        return session.measure(request["measure"], request.get("least", 3))
    if "load" in request:
        return session.load(request)
    if "replays" in request:
        return describe_replays(session.T)
    if "check" in request:
        from .core_sharing import run

        return run(request["check"], session.context, request["seconds"])
    if "peak" in request:
        return {"peak": peak_memory()}
    return {"row": session.advance()}


def serve(options: argparse.Namespace) -> int:
    """Answer requests until end of input. Output of libraries goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def write_answer(answer: dict) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    try:
        session = Session(options.module, options.device, options.scale, options.threads, options.onednn)
        write_answer(session.describe_session())
    except Exception as error:  # the library that is measured may raise anything
        write_answer({"failed": f"{type(error).__name__}: {error}"})
        return 1
    for line in sys.stdin:
        try:
            write_answer(_answer_request(session, json.loads(line)))
        except Exception as error:  # the library that is measured may raise anything
            session.rows = iter(())
            write_answer({"failed": f"{type(error).__name__}: {error}"})
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Times workloads under a module with PyTorch's API.")
    parser.add_argument("module")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default="", help="groups, workloads and rows, with commas between")
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--onednn", choices=("", "on", "off"), default="", help="torchlite's convolutions by oneDNN")
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options)
    try:
        rows = select_rows(options.only)
    except ValueError as error:
        parser.error(str(error))
    session = Session(options.module, options.device, options.scale, options.threads, options.onednn)
    print(f"import {session.seconds_to_import * 1e3:.4g} ms", flush=True)
    for name in workloads_of(rows):
        session.make(name)
        while row := session.advance():
            if row in rows:
                print(f"{row} {session.measure(options.seconds)['wall'] * 1e3:.5g} ms", flush=True)
    print(f"peak_memory {peak_memory():.4g} MiB", flush=True)
    return 0
