"""The table: what was measured on what, the aims, what failed."""

from __future__ import annotations

from typing import Any

SHOWN = 40  # failures


def failures_of(results: dict) -> list[str]:
    """Every failure of every part, and the parts that died."""
    found = []
    for part, result in results["parts"].items():
        if "died" in result:
            found.append(f"{part}: {result['died']}")
        found += [f"{part}: {line}" for line in result.get("failed", [])]
    return found


def ratio(row: dict) -> float | None:
    return row["torchlite"] / row["torch"] if row["torchlite"] is not None and row["torch"] else None


def _aim(name: str, wanted: str, value: float | None, met: bool, shown: str = "") -> dict:
    return {
        "name": name,
        "wanted": wanted,
        "value": value,
        "met": None if value is None else met,
        "shown": shown or ("not measured" if value is None else f"{value:.2f}"),
    }


def on_cuda(results: dict) -> bool:
    """Whether a GPU was used through CUDA."""
    return results["device"].split(":")[0] == "cuda" and not results["simulated"]


def _on_one_gpu(part: dict) -> bool:
    """Whether torch's times are those of the same GPU."""
    return part.get("reference", "").startswith("cuda")


def aims_of(results: dict) -> list[dict]:
    """The aims of CUDA devices, each met, missed or (None) not measured; those of a dry run or a
    quick one are neither.
    """
    parts = results["parts"]
    bench, graphs = parts.get("bench", {}), parts.get("graphs", {})
    ratios = {row["name"]: ratio(row) for row in bench.get("rows", [])} if _on_one_gpu(bench) else {}
    small = {name: value for name, value in ratios.items() if name.startswith("small.")}
    found = [
        _aim(name, "<= 1.5 of torch's time", value, value is not None and value <= 1.5) for name, value in small.items()
    ] or [_aim("small.*", "<= 1.5 of torch's time", None, False)]
    for name, row in (("gpt.train", "gpt.train"), ("resnet50.train", "resnet50.train_b4")):
        value = ratios.get(row)
        found.append(_aim(f"{name}, eager", "<= 1.0 of torch's time", value, value is not None and value <= 1.0))
    times = graphs.get("times", {}) if _on_one_gpu(graphs) else {}
    mine = [time for form, time in times.get("torchlite", {}).items() if form != "eager"]
    reference = times.get("torch", {}).get("eager")
    value = min(mine) / reference if mine and reference else None
    found.append(
        _aim("mlp.train, captured graph", "<= 0.5 of torch's eager time", value, value is not None and value <= 0.5)
    )
    shares = {row["name"]: row["share"] for row in parts.get("speed", {}).get("rows", []) if row["dtype"] == "float32"}
    for name in ("softmax", "softmax backward", "layer_norm", "layer_norm backward", "gelu", "gelu backward", "Adam"):
        value = shares.get(name)
        found.append(
            _aim(
                f"{name} kernel, float32",
                ">= 85% of the copy's bandwidth",
                value,
                value is not None and value >= 0.85,
                "" if value is None else f"{100 * value:.0f}%",
            )
        )
    return (
        found
        if on_cuda(results) and not results["quick"]
        else [{**aim, "met": None, "shown": f"{aim['shown']} (no aim of this run)"} for aim in found]
    )


def _table(head: tuple[str, ...], rows: list[tuple]) -> str:
    lines = [
        "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in row) + " |"
        for row in [head, *rows]
    ]
    return "\n".join([lines[0], "|" + " --- |" * len(head), *lines[1:]]) + "\n"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"


def _machine(result: dict) -> str:
    text = _table(("", ""), list(result.get("facts", {}).items()))
    missing = result.get("missing", [])
    return text + ("\nMissing here:\n\n" + "".join(f"- {line}\n" for line in missing) if missing else "")


def _tests(result: dict) -> str:
    counts = result.get("counts", {})
    return ", ".join(f"{n} {name}" for name, n in counts.items()) + f" in {result.get('seconds', 0):.0f} s\n"


def _opdb(result: dict) -> str:
    text = "float32: " + ", ".join(f"{part} {good}/{all_}" for part, (good, all_) in result.get("counts", {}).items())
    also = result.get("on_cpu_too", [])
    return text + (f"; fail with torchlite on the CPU too: {', '.join(also)}" if also else "") + "\n"


def _fused(result: dict) -> str:
    rows = []
    found = result.get("rows", [])
    for name in dict.fromkeys(row["name"] for row in found):
        for dtype in dict.fromkeys(row["dtype"] for row in found if row["name"] == name):
            these = [row for row in found if (row["name"], row["dtype"]) == (name, dtype)]
            known = [row["worst"] for row in these if row["worst"] is not None]
            rows.append(
                (name, dtype, f"{sum(row['ok'] for row in these)}/{len(these)}", f"{max(known, default=0):.1e}")
            )
    notes = "".join(f"\n- {note}" for note in dict.fromkeys(result.get("notes", [])))
    return _table(("kernels", "dtype", "sizes that agree", "largest difference"), rows) + (
        notes + "\n" if notes else ""
    )


def _bench(result: dict, device: str) -> str:
    reference = result.get("reference", "")
    rows = [
        (
            row["name"] if row["name"] not in ("import", "peak_rss") else f"{row['name']} ({row['group']})",
            _number(row["torchlite"]),
            _number(row["torch"]),
            "-" if ratio(row) is None else f"{ratio(row):.2f}",
            row["unit"],
        )
        for row in result.get("rows", [])
    ]
    head = ("", f"torchlite on {device}", f"torch on {reference}" if reference else "torch (absent)", "ratio", "unit")
    notes = [*filter(None, [result.get("note", "")]), *result.get("notes", [])]
    return _table(head, rows) + "".join(f"\n- {note}" for note in notes) + "\n" * bool(notes)


def _graphs(result: dict) -> str:
    times = result.get("times", {})
    reference = times.get("torch", {}).get("eager")
    forms = {
        "eager": "eager",
        "graphed": "passes are graphs (make_graphed_callables)",
        "captured": "whole step is a graph",
        "compiled": "torch.compile",
        "compiled_graphs": 'torch.compile, mode="reduce-overhead"',
    }
    rows = []
    for form, text in forms.items():
        mine, theirs = (times.get(module, {}).get(form) for module in ("torchlite", "torch"))
        if mine or theirs:
            rows.append(
                (
                    text,
                    _number(mine),
                    _number(theirs),
                    f"{mine / theirs:.2f}" if mine and theirs else "-",
                    f"{mine / reference:.2f}" if mine and reference else "-",
                )
            )
    notes = "".join(f"\n- {note}" for note in result.get("notes", []))
    return _table(
        (
            "mlp.train",
            "torchlite us",
            f"torch us ({result.get('reference', '') or 'absent'})",
            "ratio",
            "ratio to torch eager",
        ),
        rows,
    ) + (notes + "\n" if notes else "")


def _speed(result: dict) -> str:
    copies = ", ".join(f"{rate / 1e9:.1f} GB/s ({name})" for name, rate in result.get("copies", {}).items())
    rows = [
        (row["name"], row["dtype"], f"{row['ms']:.3f}", f"{row['bytes/s'] / 1e9:.1f}", f"{100 * row['share']:.0f}%")
        for row in result.get("rows", [])
    ]
    note = (
        f"Copy, read and written: {copies}. Arrays of {result.get('elements', 0)} elements; bytes that must move, "
        "over the time between events.\n"
        "\n"
    )
    products = [
        (
            row["name"],
            _number(row["torchlite"]),
            _number(row["torch"]),
            "-" if ratio(row) is None else f"{ratio(row):.2f}",
        )
        for row in result.get("products", [])
    ]
    return (
        note
        + _table(("kernel", "dtype", "ms", "GB/s", "of the copy"), rows)
        + "\n"
        + _table(("", "torchlite ms", "torch ms", "ratio"), products)
    )


def _messages(result: dict) -> str:
    note = f"Backend {result.get('backend', '')}. {result.get('note', '')}".strip()
    rows = [(row["name"], f"{row['ms']:.3f}") for row in result.get("rows", [])]
    return f"{note}\n\n" + _table(("", "ms"), rows)


def _aims(aims: list[dict]) -> str:
    words = {True: "met", False: "missed", None: ""}
    return _table(
        ("aim", "wanted", "found", ""), [(aim["name"], aim["wanted"], aim["shown"], words[aim["met"]]) for aim in aims]
    )


def table_of(results: dict) -> str:
    """Everything as Markdown."""
    parts: dict[str, Any] = results["parts"]
    facts = parts.get("machine", {}).get("facts", {})
    name, device = facts.get("device", ""), results["device"]
    quick = ", quick run: sizes too small for its figures to mean anything" if results["quick"] else ""
    where = "the CUDA simulator" if results["simulated"] else device
    dry = (
        ""
        if on_cuda(results)
        else f" This is a dry run on {where}: nothing of it was on a GPU through CUDA, and its figures are not the "
        "aims'."
    )
    failed = results["failed"]
    text = [f"# gpu_check: {name} ({device}){quick}\n", f"{results['seconds']:.0f} s. {len(failed)} failures.{dry}\n"]
    titles = {
        "machine": ("Machine", _machine),
        "tests": ("Device tests", _tests),
        "opdb": ("PyTorch's operator table", _opdb),
        "fused": ("Fused kernels against composites in double precision", _fused),
        "bench": ("Workloads", lambda r: _bench(r, device)),
        "graphs": ("Captured graphs", _graphs),
        "speed": ("Bandwidth", _speed),
        "messages": ("Collectives of one rank", _messages),
    }
    for part, (title, show) in titles.items():
        if part not in parts:
            continue
        result = parts[part]
        body = f"Left out: {result['left_out']}.\n" if "left_out" in result else show(result)
        died = f"The part {result['died']}\n\n" if "died" in result else ""
        text.append(f"## {title}\n\n{died}{body}")
        if part == "machine":
            text.append(f"## Aims\n\n{_aims(results['aims'])}")
    if failed:
        more = [f"- … and {len(failed) - SHOWN} more\n"] if len(failed) > SHOWN else []
        text.append("## Failures\n\n" + "".join([f"- {line}\n" for line in failed[:SHOWN]] + more))
    return "\n".join(text)
