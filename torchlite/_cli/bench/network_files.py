"""`python -m torchlite bench files`: networks from files beside ONNX Runtime and PyTorch."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import tempfile
from typing import Any

import numpy as np

from ..._serialization.file_formats import detect_file_format
from ..command_line import CommandError, describe_os_error, one_line
from . import markdown_sections
from .contestants import Contestant, ContestantError, check_device_and_engine, find_interpreter, torchlite_contestants
from .host_info import ForeignLoadMeter
from .measurement_rounds import ProgressLine, Run, record_failure, run_conditions
from .network_inputs import Sizes, make_inputs
from .network_packages import TABLE, Network, fetch_networks, read_table, select_networks
from .report_tables import format_ratio, format_seconds, host_summary_lines, summarize, to_markdown, to_text
from .worker_process import Worker

# The library that each format is compared with.
REFERENCES = {"onnx": "onnxruntime", "torchscript": "torch", "pt2": "torch"}
CLOCKS = ("wall", "least", "load", "first")


def run(options: argparse.Namespace) -> int:
    """Measure, print and fill pages; return the exit status."""
    table = select_networks(read_table(TABLE.read_text(encoding="utf-8")), options.only)
    if options.list:
        print("\n".join(network.name for network in table))
        return 0
    sizes = [word for words in options.size for word in words]
    if sizes and not options.file:
        options.bench.error("--size is of a --file; the packages' sizes are known")
    for page in options.write_docs:
        if not page.is_file():
            options.bench.error(f"--write-docs {page}: there is no such file")
    Sizes(sizes)
    check_device_and_engine(options)
    try:
        mine = torchlite_contestants(options.engine, options.device)
        others = _find_references(options.reference_python)
    except ContestantError as error:
        options.bench.error(str(error))
    networks = [Network(path, path, tuple(sizes)) for path in options.file]
    lacks: list[str] = []
    if options.only or not options.file:
        fetched, lacks = fetch_networks(table, options.folder)
        networks += fetched
    with tempfile.TemporaryDirectory(prefix="torchlite-bench-") as folder:
        measurement = Measurement(options, mine, others, folder)
        measurement.prepare(networks)
        done = measurement.run()
    done.failed[:0] = lacks
    for line in report(done, measurement):
        print(line)
    for page in options.write_docs:
        section = "files" if options.device == "cpu" else f"files-{options.device.partition(':')[0]}"
        filled = markdown_sections.fill_page(page, {section: write_section(done, measurement)}) if done.rows else []
        print(f"{page}: {', '.join(filled) or 'no section'} filled")
    if not done.rows:
        print("bench: nothing could be measured", file=sys.stderr)
    return 1 if not done.rows or measurement.has_failed else 0


def _find_references(pythons: list[str]) -> dict[str, Contestant]:
    """Return the installed references by their module, and say which is absent."""
    found = {}
    for module in dict.fromkeys(REFERENCES.values()):
        python = find_interpreter(module, [sys.executable, *pythons])
        if python:
            found[module] = Contestant(module, module, python)
        else:
            how = f"pip install {module}, or --reference-python PATH"
            print(f"no {module} is installed ({how}): its files are measured alone", file=sys.stderr)
    return found


class Measurement:
    """Measures networks under torchlite and the reference of each.

    difference: by row and label, the largest difference from the reference in the last round. replays: by row and
    label, "yes" or why torchlite's calls were not replayed.
    """

    def __init__(
        self, options: argparse.Namespace, mine: list[Contestant], others: dict[str, Contestant], folder: str
    ) -> None:
        self.options, self.mine, self.others, self.folder = options, mine, others, folder
        self.networks: list[tuple[Network, str, list[str]]] = []  # with the format and the inputs' names
        self.done = Run(about={})
        self.difference: dict[tuple[str, str], float] = {}
        self.replays: dict[tuple[str, str], str] = {}
        self.references: dict[str, str] = {}  # by row, the label of its reference
        self.has_failed = False

    def prepare(self, networks: list[Network]) -> None:
        """Write the inputs of each network. CommandError for a bad file of the user."""
        for network in networks:
            try:
                kind = detect_file_format(network.path)
                if kind not in REFERENCES:
                    raise ValueError(f"{network.path}: holds values that torch.save wrote, and no program")
                inputs = make_inputs(network.path, kind, network.sizes)
            except (OSError, ValueError, RuntimeError) as error:
                why = describe_os_error(error) if isinstance(error, OSError) else one_line(error)
                why = why if network.path in why else f"{network.path}: {why}"
                if not network.package:
                    raise CommandError(why) from None
                self.done.failed.append(f"{network.name}: {why}")
                continue
            np.savez(self._file_of(network, "inputs"), *[array for _, array in inputs])
            self.networks.append((network, kind, [name for name, _ in inputs]))

    def _file_of(self, network: Network, what: str) -> str:
        return os.path.join(self.folder, f"{network.name.replace(os.sep, '-')} {what}.npz")

    def run(self) -> Run:
        """Measure each network under each contestant, `options.rounds` times."""
        rounds, meter = self.options.rounds, ForeignLoadMeter()
        versions: dict[str, dict] = {}
        progress = ProgressLine(rounds * len(self.networks))
        for number in range(rounds):
            for network, kind, names in self.networks:
                progress.step(f"round {number + 1} of {rounds}", network.name)
                everyone = [*self.mine, *filter(None, [self.others.get(REFERENCES[kind])])]
                if number % 2:
                    everyone.reverse()
                self._measure(network, kind, names, everyone, progress, versions)
        progress.close()
        everyone = [*self.mine, *self.others.values()]
        self.done.about = run_conditions(self.options, versions, everyone, meter)
        return self.done

    def _measure(
        self, network: Network, kind: str, names: list[str], everyone: list[Contestant], progress: ProgressLine,
        versions: dict[str, dict],
    ) -> None:  # fmt: skip
        """Measure a network in new processes that take turns."""
        with contextlib.ExitStack() as stack:
            figures: dict[Worker, dict[str, float]] = {}
            for contestant in everyone:
                with self._noting_failure(network, contestant, progress):
                    worker = stack.enter_context(Worker(contestant, self.options.threads))
                    versions[contestant.label] = worker.about
                    figures[worker] = worker.send_request(
                        load=network.path, kind=kind, names=names, inputs=self._file_of(network, "inputs"),
                        outputs=self._file_of(network, contestant.label),
                    )  # fmt: skip
            for worker in list(figures):
                with self._noting_failure(network, worker.contestant, progress):
                    timed = worker.measure(self.options.seconds)
                    measured = {**figures[worker], "wall": timed["median"], "least": timed["least"]}
                    self.done.add(network.name, worker.contestant.label, measured, CLOCKS)
                    if worker.contestant in self.mine:
                        self.replays[network.name, worker.contestant.label] = _describe_replays(worker)
        reference = self.others.get(REFERENCES[kind])
        labels = {worker.contestant.label for worker in figures}
        if reference and reference.label in labels:
            self.references[network.name] = reference.label
            expected = _read_arrays(self._file_of(network, reference.label))
            for contestant in self.mine:
                if contestant.label in labels:
                    arrays = _read_arrays(self._file_of(network, contestant.label))
                    self.difference[network.name, contestant.label] = largest_difference(arrays, expected)

    @contextlib.contextmanager
    def _noting_failure(self, network: Network, contestant: Contestant, progress: ProgressLine) -> Any:
        try:
            yield
        except ContestantError as error:
            self.has_failed = self.has_failed or contestant in self.mine
            record_failure(self.done, progress, f"{contestant.label}: {network.name}: {one_line(error)}")


def _describe_replays(worker: Worker) -> str:
    found = worker.send_request(replays=1)
    return "yes" if found["replays"] else "; ".join(found["reasons"]) or "no reason is known"


def _read_arrays(file: str) -> list[np.ndarray]:
    with np.load(file) as arrays:
        return [arrays[f"arr_{place}"] for place in range(len(arrays.files))]


def largest_difference(arrays: list[np.ndarray], expected: list[np.ndarray]) -> float:
    """Return the largest difference of outputs, each relative to the output's largest number.

    Infinite for other shapes or another number of outputs. NaN and infinity equal themselves.
    """
    if [array.shape for array in arrays] != [array.shape for array in expected]:
        return float("inf")
    largest = 0.0
    for array, wanted in zip(arrays, expected, strict=True):
        a, b = (np.asarray(x, np.complex128 if x.dtype.kind == "c" else np.float64) for x in (array, wanted))
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        if same.all():
            continue
        finite = np.abs(b[np.isfinite(b)])
        scale = finite.max() if finite.size and finite.max() > 0 else 1.0
        found = float(np.abs(np.where(same, 0, a - np.where(same, 0, b)))[~same].max() / scale)
        largest = max(largest, found if np.isfinite(found) else float("inf"))
    return largest


# -- reports -----------------------------------------------------------------------------


def tables(done: Run, measurement: Measurement, rival: str) -> list[list[list[str]]]:
    """Return the table of times, and that of loading and differences, of the files that have a rival ("": that have
    none).
    """
    mine = {c.label: c.label.removeprefix("torchlite ") for c in measurement.mine}
    everyone = mine | ({rival: rival} if rival else {})
    rows = [row for row in done.rows if measurement.references.get(row, "") == rival]

    def columns(title: str, whom: dict[str, str], show: Any) -> list[list[str]]:
        return [[title + name, *(show(row, who) for row in rows)] for who, name in whom.items()]

    def seconds(title: str, clock: str) -> list[list[str]]:
        return columns(title, everyone, lambda row, who: format_seconds(done.median_time(row, who, clock)))

    def ratios(title: str, clock: str) -> list[list[str]]:
        return columns(title, mine, lambda row, who: format_ratio(done.ratio(row, who, rival, clock)))

    times = [["file", *rows], *seconds("", "wall")]
    loads = [["file", *rows], *seconds("load, ", "load"), *seconds("first call, ", "first")]
    if rival:
        times += [*ratios("ratio, ", "wall"), *ratios("of the least, ", "least")]
        loads += columns("difference, ", mine, lambda *at: format_difference(measurement.difference.get(at)))
    loads += columns("replayed, ", mine, lambda *at: "yes" if measurement.replays.get(at) == "yes" else "no")
    found = [[list(line) for line in zip(*table, strict=True)] for table in (times, loads)] if rows else []
    if rival and len(rows) > 1:
        means = [format_ratio(done.mean_ratio(rows, who, rival)) for who in mine]
        found[0].append(["geometric mean", *[""] * len(everyone), *means, *[""] * len(mine)])
    return found


def format_difference(value: float | None) -> str:
    return "-" if value is None else "0" if value == 0 else "other shape" if value == float("inf") else f"{value:.0e}"


def _reports(done: Run, measurement: Measurement) -> dict[str, list[list[list[str]]]]:
    """Return the tables by reference, "" for the files without one."""
    found = {rival: tables(done, measurement, rival) for rival in (*measurement.others, "")}
    return {rival: some for rival, some in found.items() if some}


def _notes(done: Run, measurement: Measurement) -> list[str]:
    """Return why calls were not replayed, and what failed."""
    found = [
        f"{row}, {label}, not replayed: {why}" for (row, label), why in measurement.replays.items() if why != "yes"
    ]
    return found + [f"failed: {line}" for line in done.failed]


def report(done: Run, measurement: Measurement) -> list[str]:
    """Return the lines for a terminal."""
    lines = host_summary_lines(done) if done.rows else []
    labels = [c.label for c in measurement.mine]
    for rival, some in _reports(done, measurement).items():
        lines += ["", f"beside {rival}" if rival else "alone", ""]
        lines += ["\n\n".join(map(to_text, some)), ""]
        lines += summarize(done, labels, rival) if rival else []
    return lines + [""] * bool(done.rows) + _notes(done, measurement)


def write_section(done: Run, measurement: Measurement) -> str:
    """Return the Markdown of the section `files`."""
    parts = ["\n".join(f"- {line}" for line in host_summary_lines(done))]
    for rival, some in _reports(done, measurement).items():
        parts += [f"**Beside {rival}**" if rival else "**Alone**", *map(to_markdown, some)]
    parts.append("\n".join(f"- {line}" for line in _notes(done, measurement)))
    return "\n\n".join(filter(None, parts))
