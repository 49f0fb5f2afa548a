"""Named ranges, with and without the library that shows them; which part of a program a profiler looks at."""

from __future__ import annotations

import types

import pytest

import torchlite as torch

nvtx = torch.cuda.nvtx


@pytest.fixture(params=["with the package", "without"])
def calls(request, monkeypatch):
    """The recorded calls of the library; None if it is missing."""
    said = [] if request.param == "with the package" else None
    library = (
        None
        if said is None
        else types.SimpleNamespace(
            push_range=lambda m: said.append(("push", m)),
            pop_range=lambda: said.append(("pop",)),
            mark=lambda m: said.append(("mark", m)),
            start_range=lambda m: said.append(("start", m)) or (m, 1),
            end_range=lambda r: said.append(("end", r)),
        )
    )
    monkeypatch.setattr(nvtx, "_load_nvtx", lambda: library)
    return said


def test_ranges(calls):
    assert (
        nvtx.range_push("a") == 0
        and nvtx.range_push("b") == 1
        and nvtx.range_pop() == 1
        and nvtx.range_pop() == 0
        and nvtx.range_pop() == -1
    )
    number = nvtx.range_start("c")
    nvtx.mark("now")
    nvtx.range_end(number)
    with nvtx.range("step {} of {n}", 1, n=2):
        pass

    @nvtx.range("whole")
    def run():
        return nvtx.range_push("in") + nvtx.range_pop()

    assert run() == 2
    assert calls in (
        None,
        [
            ("push", "a"),
            ("push", "b"),
            ("pop",),
            ("pop",),
            ("start", "c"),
            ("mark", "now"),
            ("end", ("c", 1)),
            ("push", "step 1 of 2"),
            ("pop",),
            ("push", "whole"),
            ("push", "in"),
            ("pop",),
            ("pop",),
        ],
    )
    with pytest.raises(KeyError):
        nvtx.range_end(number)
    with pytest.raises(ZeroDivisionError), nvtx.range("fails"):
        1 / 0
    assert nvtx.range_pop() == -1


def test_profiler(fake):
    x = torch.ones(1, device="cuda")
    log = fake.runtime(0).first.log
    with torch.cuda.profiler.profile():
        x + 1
    assert [(what, on is True) for what, on in log[-3:]] == [("profile", True), ("kernel", False), ("profile", False)]
    torch.cuda.profiler.start()
    torch.cuda.profiler.stop()
    assert log[-2:] == [("profile", True), ("profile", False)]
