"""Writes the reference before a build: docs/reference/generated has a page for each public name, and one for each
module with a table of its names. For ops the pages list the devices, as the op records and the backends state them.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from sphinx.application import Sphinx

from docstrings import process_docstring

from torchlite._cli.show import _unopened_backends, execution_kind_on_device
from torchlite._dispatch import INPLACE, NAMESPACES
from torchlite._dispatch.op_record import Op

REFERENCE = Path(__file__).resolve().parents[1] / "reference"
GENERATED = REFERENCE / "generated"  # a page for each name
TABLES = REFERENCE / "modules"  # a page for each module


class Module(NamedTuple):
    name: str  # as programs write it
    about: str


MODULES = (
    Module("torch", "Making tensors, and computing with them. `import torchlite as torch` gives these names."),
    Module("torch.Tensor", "Methods and attributes of tensors."),
    Module("torch.nn", "Layers, losses and containers of networks."),
    Module("torch.nn.functional", "The functions behind the layers, commonly imported as `F`."),
    Module("torch.optim", "Optimizers."),
    Module("torch.optim.lr_scheduler", "Schedules of learning rates."),
    Module("torch.autograd", "Gradients, and functions with derivatives of your own."),
    Module("torch.amp", "Mixed precision."),
    Module("torch.linalg", "Linear algebra."),
    Module("torch.fft", "Discrete Fourier transforms."),
    Module("torch.special", "Special functions, named as in SciPy where SciPy has them."),
    Module("torch.func", "Transforms of functions: `vmap`, `grad`, Jacobians."),
    Module("torch.distributions", "Probability distributions: samples, log-densities, divergences."),
    Module("torch.sparse", "Sparse tensors."),
    Module("torch.utils.data", "Data sets, samplers and loaders."),
    Module("torch.ao.quantization", "Observers, fake quantization, and quantization aware training."),
    Module("torch.ao.quantization.quantize_fx", "Quantization of networks that `torch.fx` traces."),
    Module("torch.ao.nn.quantized", "Layers that compute with 8-bit integers."),
    Module("torch.ao.nn.quantized.functional", "Functions of quantized tensors."),
    Module("torch.ao.nn.quantized.dynamic", "Quantized layers that round their inputs in each call."),
    Module("torch.export", "Programs as graphs, and the format `.pt2`."),
    Module("torch.onnx", "ONNX models, written and read."),
    Module("torch.distributed", "Several processes."),
)
OTHERS = "Others"
# Families of records, which are the modules of torchlite/_ops, under the headings of the tables of torch and Tensor.
FAMILIES = {
    family: title
    for title, families in {
        "Making tensors": "creation creation_ranges window_functions",
        "Random numbers": "random random_fill gamma_sampling",
        "Shapes, views, joining": "views manipulation joining_and_splitting view_copies inplace pad",
        "Indices": "gather_scatter",
        "Elementwise": "pointwise unary binary activation special",
        "Reductions, statistics, sorting": "reduce statistics histogram scan sort segment_reduce softmax",
        "Linear algebra": "matmul einsum linear linalg_decomp linalg_lu linalg_norm linalg_solve linalg_spectral",
        "Signals": "fft stft",
        "Networks": (
            "conv pooling normalization dropout embedding attention rnn loss margin_loss cross_entropy ctc_loss vision "
            "resample fake_quantize"
        ),
    }.items()
    for family in families.split()
}
# What modules without `__all__` define for themselves.
_HELPERS = frozenset(("check_indices", "thread_safe_generator", "unsupported_function"))


def names_of(module: Module) -> list[str]:
    """The public names of a module: `__all__`, the ops in its namespace, and where there is no `__all__` what the
    module defines.
    """
    owner = resolve(module.name)
    space = module.name.removeprefix("torch.")
    names = set(NAMESPACES.get(space, {}))
    if module.name == "torch.Tensor":
        names |= {name for name in dir(owner) if not name.startswith("_")}
    else:
        names |= set(getattr(owner, "__all__", ()))
        if module.name in ("torch", "torch.nn.functional", "torch.special", "torch.sparse"):
            names |= {name for name in dir(owner) if is_public(owner, name)}
    names -= _HELPERS | {other.name.removeprefix(f"{module.name}.") for other in MODULES}
    return sorted(name for name in names if not name.startswith("_") and is_documented(getattr(owner, name, None)))


def is_public(owner: Any, name: str) -> bool:
    """False for what a module without `__all__` imports for itself."""
    value = getattr(owner, name, None)
    home = getattr(value, "__module__", None) or ""
    return not name.startswith("_") and home.split(".")[0] == "torch" and not home.startswith("torch._dispatch")


def is_documented(value: Any) -> bool:
    return callable(value) or isinstance(value, property) or inspect.isdatadescriptor(value)


def resolve(name: str) -> Any:
    """The object of a dotted name."""
    parts = name.split(".")
    value: Any = sys.modules[parts[0]]
    for i, part in enumerate(parts[1:], 2):
        value = getattr(value, part, None)
        if value is None:
            __import__(".".join(parts[:i]))
            value = sys.modules[".".join(parts[:i])]
    return value


def kind_of(value: Any) -> str:
    if inspect.isclass(value):
        return "exception" if issubclass(value, BaseException) else "class"
    return "function" if hasattr(value, "__name__") else "data"


def directive_of(module: Module, value: Any) -> str:
    if module.name == "torch.Tensor":
        return "method" if callable(value) else "attribute"
    return kind_of(value)


def op_of(module: Module, name: str) -> Op | None:
    """The record of a name; that of `add` for the method `add_`."""
    ops = NAMESPACES.get(module.name.removeprefix("torch."), {})
    if name in ops:
        return ops[name]
    plain = ops.get(name.removesuffix("_"))
    return plain if plain is not None and plain.tags & INPLACE else None


def devices_table(op: Op) -> list[str]:
    """A table of how each device of the project computes an op."""
    kinds = {"cpu": execution_kind_on_device(op, "cpu")}
    rows = {**kinds, **dict(_unopened_backends(op, {"cpu", "meta"}))}
    lines = [
        "",
        ".. rubric:: Devices",
        "",
        ".. list-table::",
        "   :header-rows: 1",
        "",
        "   * - device",
        "     - computed by",
    ]
    for device in sorted(rows, key=lambda name: (name != "cpu", name)):
        lines += [f"   * - ``{device}``", f"     - {WORDS[rows[device].split(' ')[0].rstrip(',;')]}"]
    return [*lines, ""]


WORDS = {
    "kernel": "a kernel of its own",
    "composite": "other ops, in which it is written",
    "absent": "not available (``TORCHLITE_FALLBACK=1`` computes it on the CPU)",
    "cannot": "not available here",
}


def title_of(full: str) -> str:
    """A dotted name as a title, which may break after a dot or an underscore: the spaces there have no width."""
    return full.replace(".", ".\u200b").replace("_", "\\_\u200b")


def page_of(module: Module, name: str, first: bool = True) -> str:
    """The reStructuredText of a name's page; `first` is False for a class that has a page under another name."""
    value = inspect.getattr_static(resolve(module.name), name, None) or getattr(resolve(module.name), name)
    if isinstance(value, staticmethod | classmethod):
        value = getattr(resolve(module.name), name)
    full = f"{module.name}.{name}"
    directive = directive_of(module, value)
    lines = [
        ":orphan:",
        "",
        title_of(full),
        "=" * len(title_of(full)),
        "",
        f"Part of :doc:`{module.name} </reference/modules/{module.name}>`.",
        "",
    ]
    lines += [f".. auto{directive}:: {full}"]
    if directive == "class":
        lines += ["   :members:"] + ["   :no-index:"] * (not first)
    op = op_of(module, name)
    if op is not None:
        lines += devices_table(op)
    return "\n".join([*lines, ""])


def summary_of(value: Any) -> str:
    lines = (inspect.getdoc(value) or "").splitlines()
    process_docstring(None, "", "", value, None, lines)  # type: ignore[arg-type]
    text = " ".join(line.strip() for line in _first_paragraph(lines))
    return text if len(text) < 300 else text[:300].rpartition(" ")[0] + " ..."


def _first_paragraph(lines: Iterable[str]) -> list[str]:
    out: list[str] = []
    for line in lines:
        if line.strip():
            out.append(line)
        elif out:
            break
    return out


def group_of(module: Module, name: str) -> str:
    """The heading under which a name stands in the table of its module: the family of the op's record."""
    op = op_of(module, name)
    if op is not None:
        return FAMILIES.get(Path(op.file).stem, OTHERS)
    value = getattr(resolve(module.name), name)
    if inspect.isclass(value):
        return "Classes"
    return OTHERS if callable(value) else "Attributes"


def table_of(module: Module, names: list[str]) -> str:
    """The reStructuredText of a module's page: its names, and where there are hundreds, in groups."""
    lines = [module.name, "=" * len(module.name), "", module.about.replace("`", "``"), ""]
    lines += [".. autoclass:: torch.Tensor", ""] if module.name == "torch.Tensor" else []
    if len(names) < 300:
        return "\n".join([*lines, *rows_of(module, names), ""])
    groups: dict[str, list[str]] = {
        title: [] for title in (*dict.fromkeys(FAMILIES.values()), OTHERS, "Classes", "Attributes")
    }
    for name in names:
        groups[group_of(module, name)].append(name)
    for title, members in groups.items():
        if members:
            lines += [title, "-" * len(title), "", *rows_of(module, members), ""]
    return "\n".join(lines)


def rows_of(module: Module, names: list[str]) -> list[str]:
    lines = [".. list-table::", "   :widths: 30 70", "   :class: names", ""]
    for name in names:
        summary = summary_of(getattr(resolve(module.name), name)).replace("\n", " ")
        lines += [f"   * - :doc:`{name} </reference/generated/{module.name}.{name}>`", f"     - {summary}"]
    return lines


def write_all(folder: Path, pages: dict[str, str]) -> None:
    """Make a folder hold these pages and no others. Those that did not change are not written, so that a second build
    reads only what changed.
    """
    folder.mkdir(exist_ok=True)
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text() != text:
            path.write_text(text)
    for path in folder.glob("*.rst"):
        if path.name not in pages:
            path.unlink()


def generate(app: Sphinx | None = None) -> None:
    names = {module: names_of(module) for module in MODULES}
    write_all(TABLES, {f"{module.name}.rst": table_of(module, names[module]) for module in MODULES})
    pages, seen = {}, set()
    for module, name in ((at, name) for at in MODULES for name in names[at]):
        value = getattr(resolve(module.name), name)
        pages[f"{module.name}.{name}.rst"] = page_of(module, name, first=id(value) not in seen)
        seen |= {id(value)} if inspect.isclass(value) else set()
    write_all(GENERATED, pages)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", generate)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
