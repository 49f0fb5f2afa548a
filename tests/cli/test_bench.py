"""`python -m torchlite bench` at small sizes against itself: every row, tables, history and pictures."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import pytest

import torchlite as torch
from torchlite.__main__ import main
from torchlite._cli.bench import (
    contestants,
    core_sharing,
    cpu_contention,
    markdown_sections,
    overhead_breakdown,
    report_tables,
    run_history,
    svg_chart,
    worker_process,
)
from torchlite._cli.bench.measurement_rounds import IMPORT, MEMORY, Run
from torchlite._cli.bench.workloads import timing as measuring
from torchlite._cli.bench.workloads.context import Context
from torchlite._cli.bench.workloads.worker import Session
from torchlite._cli.bench.workloads.workload_names import (
    FILES,
    GROUPS,
    WORKLOADS,
    file_of,
    group_of,
    select_rows,
    workloads_of,
)

TINY = ("--rounds", "1", "--seconds", "0.002", "--scale", "0.1")


@pytest.fixture(autouse=True)
def as_before():
    """Workloads seed the generator."""
    state, threads = torch.get_rng_state(), torch.get_num_threads()
    yield
    torch.set_rng_state(state)
    torch.set_num_threads(threads)


@pytest.fixture
def bench(capsys):
    """Runs the command; its status, what it printed, and its errors."""

    def run(*words):
        try:
            status = main(["bench", *map(str, words)])
        except SystemExit as error:  # wrong arguments
            status = error.code
        return status, *capsys.readouterr()

    return run


# -- the workloads ---------------------------------------------------------------------


@pytest.mark.parametrize("workload", WORKLOADS)
def test_every_row_runs(workload):
    session = Session("torchlite", "cpu", 0.1, 2)
    session.make(workload)
    found = []
    while name := session.advance():
        found.append(name)
        session.call()
    assert tuple(found) == WORKLOADS[workload]


def test_groups_have_every_workload_once():
    in_groups = [name for names in GROUPS.values() for name in names]
    assert sorted(in_groups) == sorted(WORKLOADS) and len(set(in_groups)) == len(in_groups)
    assert sorted(WORKLOADS) == sorted(name for workloads in FILES.values() for name in workloads)
    rows = [row for names in WORKLOADS.values() for row in names]
    assert len(set(rows)) == len(rows)


def test_rows_are_chosen_by_group_workload_and_row():
    assert select_rows("small") == list(WORKLOADS["small"])
    assert select_rows("big.add,gpt") == ["gpt.train", "gpt.generate", "big.add"]
    assert select_rows("") == [row for names in GROUPS.values() for name in names for row in WORKLOADS[name]]
    assert workloads_of(["big.add", "mlp.infer"]) == ["mlp", "large"]
    assert group_of("unet.train") == "networks" and group_of(IMPORT) == "process"
    with pytest.raises(ValueError, match="'nonsense'"):
        select_rows("small,nonsense")
    assert (
        file_of("small", "jax") == "in_jax"
        and file_of("gpt", "jax") is None
        and file_of("gpt", "torch") == "language_models"
    )


def test_the_folder_runs_by_its_path():
    """Under an interpreter that finds no package of ours but the module that is measured."""
    words = [str(contestants.WORKLOADS), "torchlite", "--only", "small.add,mlp.infer", "--seconds", "0.001"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([sys.executable, *words], capture_output=True, text=True, check=True, env=environment)
    rows = [line.split() for line in done.stdout.splitlines()]
    assert [row[0] for row in rows] == ["import", "small.add", "mlp.infer", "peak_memory"]
    assert all(float(row[1]) > 0 for row in rows)


def test_short_calls_are_repeated_and_long_ones_are_not():
    calls = []
    short = measuring.measure(lambda: calls.append(1), lambda result: None, 0.005)
    assert short["calls"] > 1000 and 0 < short["wall"] < measuring.SAMPLE and len(calls) > short["calls"]
    long = measuring.measure(lambda: sum(range(300_000)), lambda result: None, 0.001)
    assert long["calls"] == 3 and long["wall"] > measuring.SAMPLE / 2


def test_devices_are_waited_for():
    waited = []
    library = type("T", (), {"opencl": type("runtime", (), {"synchronize": staticmethod(lambda: waited.append(1))})})
    Context(library, "opencl:1").wait(None)
    Context(library, "cpu").wait(None)
    assert waited == [1]


# -- the command -------------------------------------------------------------------------


def test_a_comparison_is_printed_recorded_drawn_and_written(bench, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "before\n<!-- bench tables -->\nold\n<!-- end -->\n<!-- bench load -->\nkept\n<!-- end -->\nafter\n"
    )
    kept, drawn = tmp_path / "deep" / "history.jsonl", tmp_path / "bars.svg"
    words = "--only", "small.add,mlp.train,mlp.infer", "--against", "torchlite", "--history", kept, *TINY
    status, printed, errors = bench(*words, "--picture", drawn, "--write-docs", page)
    assert status == 0, errors
    table = [line.split() for line in printed.splitlines() if line.startswith(("small.add", "mlp."))]
    assert [row[0] for row in table] == ["small.add", "mlp.train", "mlp.infer"]
    assert "geometric mean" in printed and "round 1 of 1" in errors
    (run,) = run_history.read(kept)
    assert set(run["rows"]) == {"small.add", "mlp.train", "mlp.infer"} and run["threads"] == 2
    figures = run["rows"]["mlp.train"]["torchlite"]
    assert set(figures) == {"wall", "thread", "process"} and all(value > 0 for value in figures.values())
    assert run["contestants"]["torchlite"]["engine"].partition("+")[0] in ("numpy", "cc", "opencl")
    text = page.read_text()
    assert text.startswith("before\n<!-- bench tables -->\n\n**Single ops") and "old" not in text
    assert "<!-- bench load -->\nkept\n<!-- end -->\nafter\n" in text and "| mlp.train | " in text
    assert ElementTree.parse(drawn).getroot().tag.endswith("svg")
    # Once more: the history grows, and the run is compared with the one before.
    status, printed, _ = bench(*words, "--cpu-time")
    assert status == 0 and len(run_history.read(kept)) == 2
    assert "of the times it took in the run of" in printed and "of process's CPU" in printed
    assert sorted(p.name for p in tmp_path.rglob("*.part")) == []


def test_times_alone_without_a_rival(bench, tmp_path):
    status, printed, errors = bench("--only", "small.add", "--against", "none", "--no-history", *TINY)
    assert status == 0 and "times alone" in errors
    assert "row        torchlite\nsmall.add " in printed


def test_process_rows_are_import_and_memory():
    run = Run(about={})
    for row in (IMPORT, MEMORY):
        run.add(row, "a", {"wall": 2.0})
        run.add(row, "b", {"wall": 4.0})
    ((group, table),) = report_tables.comparison_tables(run, ["a"], "b", False)
    assert group == "process" and table[1:] == [
        ["import", "2 s", "4 s", "0.50"],
        ["peak_memory", "2 MiB", "4 MiB", "0.50"],
    ]


@pytest.mark.parametrize(
    "words, said",
    [
        (("--only", "nonsense"), "there is no group, workload or row 'nonsense'"),
        (("--rounds", "0"), "0 is not at least 1"),
        (("--rounds", "many"), "'many' is not a whole number"),
        (("--seconds", "-1"), "-1 is not above 0"),
        (("--scale", "nan"), "nan is not above 0"),
        (("--against", "numpy"), "there is no rival 'numpy'"),
        (("--engine", "fortran"), "there is no engine 'fortran'"),
        (("--engine", "cc", "--device", "meta"), "kernels for cpu tensors"),
        (("--reference-python", "/no/such/python", "--against", "torchlite"), "/no/such/python: No such file"),
        (("--write-docs", "/no/such/page.md"), "there is no such file"),
        (("--parts", "--sharing"), "not allowed with"),
        (("--history", "a", "--nonsense"), "unrecognized arguments"),
    ],
)
def test_wrong_arguments_are_one_clear_error(bench, words, said):
    status, printed, errors = bench(*words)
    assert status == 2 and not printed
    assert errors.splitlines()[-1].startswith("python -m torchlite") and said in errors.splitlines()[-1]


def test_help_and_list(bench):
    status, printed, _ = bench("--help")
    assert status == 0 and "--reference-python" in printed and "examples:" in printed
    status, printed, _ = bench("--list")
    assert status == 0 and all(row in printed for rows in WORKLOADS.values() for row in rows)


def fake_torch(folder, text, monkeypatch):
    (folder / "torch.py").write_text(text)
    monkeypatch.syspath_prepend(folder)


@pytest.mark.parametrize(
    "text, said",
    [
        ("raise ImportError('no libgomp')", "ImportError: no libgomp"),
        ("import os, sys; print('broken', file=sys.stderr); os._exit(3)", "status 3: broken"),
        ("__version__ = '0'", "has no attribute"),
    ],
    ids=["raises", "dies", "lacks"],
)
def test_a_rival_that_fails_costs_its_figures_alone(bench, tmp_path, monkeypatch, text, said):
    fake_torch(tmp_path, text, monkeypatch)
    status, printed, _ = bench("--only", "small.add", "--against", "torch", "--no-history", *TINY)
    assert status == 0 and "failed\n  torch" in printed and said in printed
    assert "small.add" in printed


def test_a_worker_that_hangs_is_ended(tmp_path, monkeypatch):
    fake_torch(tmp_path, "import time; time.sleep(60)", monkeypatch)
    with pytest.raises(contestants.ContestantError, match="no answer within 0 s"):
        worker_process.Worker(contestants.Contestant("torch", "torch"), 1, limit=0.2)


def test_an_engine_that_does_not_serve_fails(monkeypatch):
    monkeypatch.setattr(worker_process, "ENGINE", "TORCHLITE_NO_SUCH_VARIABLE")
    with pytest.raises(contestants.ContestantError, match="serves instead"):
        worker_process.Worker(contestants.Contestant("torchlite", "torchlite", engine="fortran"), 1)


def test_a_torch_that_is_torchlite_is_no_rival(tmp_path, monkeypatch):
    fake_torch(tmp_path, "from torchlite import *", monkeypatch)
    found = contestants.find_rivals(None, [], "cpu")
    assert "torch" not in [c.module for c in found if c.python == sys.executable]


# -- files ---------------------------------------------------------------------------------


def a_run(**ratios):
    run = Run(about={"date": "2026-01-01T00:00:00", "cpu": "a <CPU>", "cores": 2, "threads": 2, "device": "cpu",
                     "rounds": 1, "scale": 1.0, "others": 0.01, "load_before": 0.5, "commit": "",
                     "contestants": {}})  # fmt: skip
    for row, value in ratios.items():
        for label, figure in (("torchlite", value), ("torch", 1.0)):
            run.add(row.replace("__", "."), label, {"wall": figure, "thread": figure, "process": figure})
    return run


def test_history_is_written_atomically(tmp_path, monkeypatch):
    file = tmp_path / "history.jsonl"
    run_history.append(file, a_run(small__add=0.5))
    before = file.read_text()
    monkeypatch.setattr(run_history.os, "replace", lambda *args: (_ for _ in ()).throw(OSError("no space")))
    with pytest.raises(OSError, match="no space"):
        run_history.append(file, a_run(small__add=0.6))
    assert file.read_text() == before and [p.name for p in tmp_path.iterdir()] == ["history.jsonl"]


def test_lines_that_are_no_run_are_passed_over(tmp_path):
    file = tmp_path / "history.jsonl"
    file.write_text('{"rows": \n[]\n{"cpu": "x"}\n')
    run_history.append(file, a_run(small__add=0.5))
    (kept,) = run_history.read(file)
    assert kept["rows"]["small.add"]["torchlite"]["wall"] == 0.5
    assert run_history.read(tmp_path / "nothing") == []
    assert [json.loads(line) for line in file.read_text().splitlines()[-1:]] == [kept]


def test_only_runs_of_the_same_settings_are_compared():
    run = a_run(small__add=0.5, mlp__train=1.0)
    alike, other = run_history.record(run), {**run_history.record(run), "threads": 1}
    assert (
        run_history.last_comparable([alike, other], run) == alike and run_history.last_comparable([other], run) is None
    )
    slower = {**alike, "rows": {row: {who: {"wall": 2 * f["wall"]} for who, f in labels.items()}
                                for row, labels in alike["rows"].items()}}  # fmt: skip
    assert run_history.mean_time_ratio(slower, run, "torch") == pytest.approx(0.5)


def test_the_picture_has_a_bar_for_each_row_and_both_backgrounds():
    text = svg_chart.draw_ratio_chart(a_run(small__add=0.5, mlp__train=0.04, big__gelu=12.0), ["torchlite"], "torch")
    root = ElementTree.fromstring(text)
    assert text.count("<rect") == 3 and text.count('class="c0"') == 3
    assert "prefers-color-scheme:dark" in text and "a &lt;CPU&gt;" in text
    bars = list(root.iter("{http://www.w3.org/2000/svg}rect"))
    places = sorted((float(b.get("x")), float(b.get("x")) + float(b.get("width"))) for b in bars)
    assert places[0][1] == pytest.approx(places[1][1], abs=0.2) == pytest.approx(places[2][0], abs=0.2)
    assert all(svg_chart.NAMES < left < right < svg_chart.COLUMN for left, right in places)


def test_the_picture_tells_engines_apart():
    run = a_run(small__add=0.5, mlp__train=0.04)
    run.add("small.add", "torchlite cc", {"wall": 0.25})
    text = svg_chart.draw_ratio_chart(run, ["torchlite", "torchlite cc"], "torch")
    ElementTree.fromstring(text)
    assert text.count("<rect") == 3 and text.count("<circle") == 2 and ">torchlite cc</text>" in text


def test_busy_machines_show_cpu_times():
    run = a_run(small__add=0.5)
    assert not report_tables.is_busy(run)
    run.about["others"] = 0.5
    assert report_tables.is_busy(run)
    ((_, table),) = report_tables.comparison_tables(run, ["torchlite"], "torch", True)
    assert table[0] == ["row", "torchlite", "torch", "ratio", "of thread's CPU", "of process's CPU"]
    assert "50% of the cores" in report_tables.host_summary_lines(run)[1]


def test_medians_are_of_ratios_of_one_round():
    run = Run(about={})
    for mine, theirs in ((1.0, 2.0), (30.0, 10.0), (4.0, 5.0)):
        run.add("small.add", "a", {"wall": mine})
        run.add("small.add", "b", {"wall": theirs})
    assert run.ratio("small.add", "a", "b") == 0.8 and run.median_time("small.add", "a") == 4.0
    assert report_tables.summarize(run, ["a"], "b") == ["a: geometric mean 0.80 over 1 rows; no row is slower than b's"]


def test_pages_retain_sections_without_figures(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- bench parts -->\nold\n<!-- end -->\n")
    assert markdown_sections.fill_page(page, {"load": "x"}) == [] and "old" in page.read_text()
    assert markdown_sections.fill_page(page, {"parts": "new\\1"}) == ["parts"]
    assert page.read_text() == "<!-- bench parts -->\n\nnew\\1\n\n<!-- end -->\n"


# -- load, sharing, parts ------------------------------------------------------------------


def test_networks_under_load(bench, monkeypatch, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- bench load -->\n<!-- end -->\n")
    monkeypatch.setattr(cpu_contention, "AIM", 1e9)
    status, printed, errors = bench(
        "--under-load", "--only", "mlp.infer", "--against", "none", "--write-docs", page, *TINY
    )
    assert status == 0, errors
    assert "1 busy" in printed and "| mlp.infer | " in page.read_text() and "beside one busy process" in printed
    monkeypatch.setattr(cpu_contention, "AIM", 0.0)
    assert bench("--under-load", "--only", "mlp.infer", "--against", "none", *TINY)[0] == 1


def test_busy_processes_end_with_the_block(monkeypatch):
    started = []
    begin = subprocess.Popen
    monkeypatch.setattr(cpu_contention.subprocess, "Popen", lambda *args: started.append(begin(*args)) or started[-1])
    with pytest.raises(KeyError), cpu_contention.busy_processes(2):
        assert [process.poll() for process in started] == [None, None]
        raise KeyError
    assert all(process.poll() is not None for process in started)


def test_sharing_of_cores(bench):
    status, printed, errors = bench(
        "--sharing", "--against", "none", "--rounds", "1", "--seconds", "0.02", "--scale", "0.1"
    )
    assert status in (0, 1), errors  # the limits are for quiet machines
    for name in (
        "cores used by one thread",
        "cores used when idle",
        "gpt steps of two threads",
        "items of two workers",
    ):
        assert name in printed


def test_parts_of_a_function_are_named_by_its_comments():
    x = torch.randn(4, 4)
    _ = x + x
    found = overhead_breakdown.measure_parts(torch.Tensor.__add__, (x, x), 2)
    names = [name for name, _ in found]
    assert names[0].startswith("the call") and names[-1] == "together" and "The result's tensor." in names
    assert all(ns >= 0 for _, ns in found)
    assert torch.equal(x + x, 2 * x)
    g = x.clone().requires_grad_()
    recorded = [what for what, _ in overhead_breakdown.truncate_at_comments(torch.Tensor.__add__, (g, g))]
    assert len(recorded) > len(overhead_breakdown.truncate_at_comments(torch.Tensor.__add__, (x, x)))


def test_everything_one_after_the_other(bench, monkeypatch):
    told = []
    for module in (cpu_contention, core_sharing, overhead_breakdown):
        monkeypatch.setattr(module, "run", lambda *words, name=module.__name__: told.append((name, words[1:])) or 0)
    status, printed, _ = bench(
        "--everything", "--only", "small.add,gpt.train", "--against", "none", "--no-history", *TINY
    )
    assert status == 0 and "small.add" in printed
    assert [name.rpartition(".")[2] for name, _ in told] == ["cpu_contention", "core_sharing", "overhead_breakdown"]
    assert told[0][1][1:] == ([], ["gpt.train"])


def test_parts_fill_their_section(bench, tmp_path):
    page = tmp_path / "page.md"
    page.write_text("<!-- bench parts -->\n<!-- end -->\n")
    status, printed, _ = bench("--parts", "--seconds", "0.001", "--write-docs", page)
    assert status == 0 and "x + y, 4x4, no gradient" in printed and "| together | " in page.read_text()
