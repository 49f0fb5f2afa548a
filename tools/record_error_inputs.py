"""Record what PyTorch says to the error inputs of its tables of ops, modules and optimizers, for tests/error_inputs.

usage: python tools/record_error_inputs.py

It needs the extra `oracle` and what PyTorch's own test tables import, and rewrites tests/error_inputs/*.json. Each case
is recorded in the form in which the test makes it again, and kept only if PyTorch then says the same; memory whose
contents do not matter is recorded as zeros.
"""

from __future__ import annotations

import base64
import json
import math
import pathlib
import sys
import warnings

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tests.error_inputs.replay import HERE, NO_ERROR, answer  # noqa: E402

# Ops that PyTorch's table calls by a function of its own: what that calls.
CALLS = {
    "item": "Tensor.item",
    "cauchy": "Tensor.cauchy_",
    "exponential": "Tensor.exponential_",
    "geometric": "Tensor.geometric_",
    "log_normal": "Tensor.log_normal_",
    "normal": "Tensor.normal_",
    "uniform": "Tensor.uniform_",
    "sum_to_size": "Tensor.sum_to_size",
    "reshape_as": "Tensor.reshape_as",
    "view": "Tensor.view",
    "view_as": "Tensor.view_as",
    "T": "Tensor.T",
}


LARGE = 2**16  # bytes: what is larger is recorded as zeros in any case


def torch_bytes(torch, storage) -> bytes:
    """The contents of a storage."""
    return torch.tensor([], dtype=torch.uint8).set_(storage).numpy().tobytes()


class Encoder:
    """Turns a case's arguments into JSON; the tensors' storages go to `memory`."""

    def __init__(self, torch):
        self.torch = torch
        self.memory: list[list] = []
        self.places: dict[int, int] = {}
        self.numbers: dict[int, int] = {}
        self.kept: list = []

    def storage(self, tensor) -> int:
        storage = tensor.untyped_storage()
        place = id(tensor) if tensor.device.type == "meta" else storage.data_ptr() or id(tensor)
        if place not in self.places:
            self.places[place] = len(self.memory)
            self.kept.append(tensor)
            size = storage.nbytes()
            text = None
            if tensor.device.type != "meta" and size <= LARGE:
                text = base64.b64encode(torch_bytes(self.torch, storage)).decode()
            self.memory.append([size, text])
        return self.places[place]

    def encode(self, value):
        torch = self.torch
        if isinstance(value, torch.Tensor):
            number = self.numbers.setdefault(id(value), len(self.numbers))
            self.kept.append(value)
            index = self.storage(value)
            dtype = str(value.dtype).removeprefix("torch.")
            layout = [list(value.shape), list(value.stride()), value.storage_offset()]
            flags = [value.requires_grad, isinstance(value, torch.nn.Parameter)]
            return {"tensor": [number, dtype, *layout, index, value.device.type, *flags]}
        if isinstance(value, tuple):
            return {"tuple": [self.encode(item) for item in value]}
        if isinstance(value, list):
            return [self.encode(item) for item in value]
        if isinstance(value, dict):
            return {"dict": [[key, self.encode(item)] for key, item in value.items()]}
        if isinstance(value, (torch.dtype, torch.layout, torch.memory_format)):
            return {"torch": str(value).removeprefix("torch.")}
        if isinstance(value, complex):
            return {"complex": str(value)}
        if isinstance(value, float) and not math.isfinite(value):
            return {"float": str(value)}
        if value is None or isinstance(value, (bool, int, float, str)):
            return value
        raise TypeError(f"no record for a {type(value).__name__}")


def smaller(torch, case: dict) -> None:
    """Leave out the contents of memory that the answer does not depend on."""
    for place in [place for place in case["memory"] if place[1] is not None]:
        text, place[1] = place[1], None
        if answer(torch, case) != case["error"]:
            place[1] = text


def case_of(torch, call: str, args, kwargs, **more) -> dict | None:
    """A case with PyTorch's answer; None where PyTorch raises nothing."""
    encoder = Encoder(torch)
    case = {
        "call": call,
        "args": encoder.encode(list(args)),
        "kwargs": encoder.encode(dict(kwargs))["dict"],
        **{name: encoder.encode(value) if name != "gradients" else value for name, value in more.items()},
        "memory": encoder.memory,
        "error": ["Warning", ""],
    }
    if "gradients" in more:
        case["gradients"] = [[encoder.encode(p), encoder.encode(p.grad)] for p in more["gradients"]]
    if "forward_kwargs" in more:
        case["forward_kwargs"] = case["forward_kwargs"]["dict"]
    case["error"] = answer(torch, case)
    if case["error"] == NO_ERROR:
        return None
    smaller(torch, case)
    return case


def op_call(torch, op, sample):
    """The path of an op's function and its arguments."""
    args, kwargs = [sample.input, *sample.args], sample.kwargs
    if op.name == "where":
        return "where", [args[1], args[0], *args[2:]], kwargs
    if op.name == "nn.functional.embedding":
        return op.name, [args[1], args[0]], kwargs
    if op.name == "linalg.lstsq":
        return op.name, args[:2], {"driver": args[2]} if len(args) > 2 else kwargs
    name = "Tensor." + op.name if op.name.startswith("__") else CALLS.get(op.name, op.name)
    return name, args, kwargs


def ops(torch):
    """The error inputs of the op table."""
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if op.error_inputs_func is None or op.name.startswith("jiterator"):
            continue
        for given in op.error_inputs("cpu"):
            sample = given.sample_input
            case = case_of(torch, *op_call(torch, op, sample))
            try:
                if "out" not in sample.kwargs:  # which would be changed, and the next case may share it
                    op(sample.input, *sample.args, **sample.kwargs)
            except Exception as error:
                if case is None or case["error"][1] != str(error):
                    print(f"another answer when made again: {op.name}: {error!r}, {case and case['error']}")
            yield case


def modules(torch):
    """The error inputs of the table of modules."""
    from torch.testing._internal.common_modules import ModuleErrorEnum, module_db

    for info in module_db:
        for training in (True, False) if info.module_error_inputs_func is not None else ():
            for given in info.module_error_inputs_func(
                info, device="cpu", dtype=torch.float32, requires_grad=False, training=training
            ):
                made, run = given.module_error_input.constructor_input, given.module_error_input.forward_input
                more = {}
                if given.error_on == ModuleErrorEnum.FORWARD_ERROR:
                    more = {"forward": list(run.args), "forward_kwargs": run.kwargs, "training": training}
                elif not training:
                    continue
                yield case_of(torch, f"nn.{info.module_cls.__name__}", made.args, made.kwargs, **more)


def optimizers(torch):
    """The error inputs of the table of optimizers."""
    from torch.testing._internal.common_optimizers import OptimizerErrorEnum, optim_db

    for info in optim_db:
        if info.optim_error_inputs_func is None:
            continue
        for given in info.optim_error_inputs_func(device="cpu", dtype=torch.float32):
            params, kwargs = given.optimizer_error_input.params, given.optimizer_error_input.kwargs
            more = {}
            if given.error_on == OptimizerErrorEnum.STEP_ERROR:
                more = {"step": True, "gradients": [p for p in params if p.grad is not None]}
            try:
                yield case_of(torch, f"optim.{info.optim_cls.__name__}", [params], kwargs, **more)
            except (TypeError, NotImplementedError, RuntimeError) as error:
                print(f"left out: {info.optim_cls.__name__}: {error}")


def main() -> None:
    import torch

    warnings.simplefilter("ignore")
    for table in (ops, modules, optimizers):
        torch.manual_seed(0)
        found = [case for case in table(torch) if case is not None]
        lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in found)
        path = HERE / f"{table.__name__}.json"
        path.write_text(f"[\n{lines}\n]\n")
        print(f"{table.__name__}: {len(found)} cases, {path.stat().st_size} bytes")


if __name__ == "__main__":
    main()
