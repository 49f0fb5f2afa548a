"""Levels of instructions."""

import pytest

from torchlite_backends.device_runtime.core import processor_level


@pytest.fixture
def processor(monkeypatch):
    """Returns a function that gives the processor a level of x86-64."""
    monkeypatch.setattr(processor_level, "is_x86_64", lambda: True)
    monkeypatch.delenv(processor_level.VARIABLE, raising=False)

    def set_level(level):
        monkeypatch.setattr(processor_level, "processor_level", lambda: level)

    return set_level


@pytest.mark.parametrize(
    ("own", "asked", "runs"),
    [
        ("x86-64-v4", "x86-64-v3", True),
        ("x86-64-v4", "x86-64-v4", True),
        ("x86-64-v3", "x86-64-v4", False),
        ("x86-64-v3", "native", True),
        ("", "x86-64-v3", False),
        ("", "native", True),
    ],
)
def test_a_processor_runs_its_level_and_those_below(processor, own, asked, runs):
    processor(own)
    assert (processor_level.why_not(asked) == "") == runs


@pytest.mark.parametrize(
    ("own", "named", "wide"),
    [("x86-64-v4", "", True), ("x86-64-v4", "native", True), ("x86-64-v4", "x86-64-v3", False), ("", "", False)],
)
def test_the_named_level_decides_about_avx512(processor, monkeypatch, own, named, wide):
    processor(own)
    monkeypatch.setenv(processor_level.VARIABLE, named)
    assert processor_level.has_avx512() == wide


def test_an_unknown_level_is_refused(processor, monkeypatch):
    monkeypatch.setenv(processor_level.VARIABLE, "x86-64-v5")
    with pytest.raises(RuntimeError, match="names 'x86-64-v5', and there are native, x86-64-v4 and x86-64-v3"):
        processor_level.requested_level()


def test_the_level_of_this_processor_is_one_of_its_architecture():
    assert processor_level.processor_level() in ("", *processor_level.list_levels())
