"""Progress of long work: tqdm's bar on a terminal, plain lines elsewhere."""

from __future__ import annotations

import io
import sys

import pytest

import torchlite as torch
from torchlite._cli.bench.measurement_rounds import ProgressLine
from torchlite.utils import _progress_bar
from torchlite.utils._progress_bar import PlainProgress, make_progress_bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_tqdm_on_a_terminal():
    tqdm = pytest.importorskip("tqdm").tqdm
    stream = Terminal()
    with make_progress_bar(10, desc="work", file=stream, mininterval=0) as bar:
        assert isinstance(bar, tqdm)
        bar.update(5)
        bar.set_postfix_str("half")
    assert "work:  50%" in stream.getvalue() and "half" in stream.getvalue()


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal(), None])
def test_lines_without_a_terminal_or_tqdm(monkeypatch, capsys, stream):
    monkeypatch.setitem(sys.modules, "tqdm", None)
    bar = make_progress_bar(10, desc="work", file=stream)
    assert isinstance(bar, PlainProgress)
    bar.update(5)  # no line: ten seconds have not passed
    bar.set_postfix_str("half")
    text = capsys.readouterr().err if stream is None else stream.getvalue()
    assert text.startswith("work: 50% of 10 it, half, ") and text.count("\n") == 1 and "\r" not in text


def test_a_line_every_ten_seconds(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(_progress_bar.time, "monotonic", lambda: now[0])
    stream = io.StringIO()
    bar = make_progress_bar(100, file=stream, unit="B", unit_scale=True)
    for _ in range(30):
        now[0] += 1
        bar.update()
    assert [line.split(" ")[0] for line in stream.getvalue().splitlines()] == ["10%", "20%", "30%"]


def test_unknown_totals_and_disabled_bars():
    stream = io.StringIO()
    bar = make_progress_bar(None, file=stream, unit="B", unit_scale=True)
    bar.update(3_000_000)
    bar.refresh()
    assert stream.getvalue().startswith("3 MB, ")
    quiet = make_progress_bar(3, file=stream, disable=True)
    quiet.refresh()
    assert stream.getvalue().count("\n") == 1


def test_a_line_for_each_stage_of_a_measurement(capsys):
    progress = ProgressLine(4)
    for stage in ("round 1", "round 1", "round 2"):
        progress.step(stage, "add")
    progress.write_line("add failed")
    progress.close()
    assert capsys.readouterr().err.splitlines() == ["round 1 …", "round 2 …", "add failed"]


def test_downloads(tmp_path, capsys):
    source = tmp_path / "source"
    source.write_bytes(b"x" * 1000)
    torch.hub.download_url_to_file(source.as_uri(), str(tmp_path / "copy"), progress=True)
    assert (tmp_path / "copy").read_bytes() == source.read_bytes() and "\r" not in capsys.readouterr().err
