"""Metrics by group, and of measured functions."""

import pytest

from torchlite.distributed.elastic import metrics


class Kept(metrics.MetricHandler):
    def __init__(self):
        self.values = []

    def emit(self, metric_data):
        self.values.append(metric_data)

    def names(self):
        return [(value.group_name, value.name) for value in self.values]


@pytest.fixture
def kept(monkeypatch):
    """The handler of all groups but "other"."""
    monkeypatch.setattr(metrics.api, "_handlers", {})
    metrics.configure(Kept(), "other")
    handler = Kept()
    metrics.configure(handler)
    return handler


def test_a_group_has_its_handler(kept):
    metrics.put_metric("a", 1)
    metrics.put_metric("b", 2, "other")
    metrics.getStream("mine").add_value("c", 3)
    with pytest.warns(FutureWarning, match="put_metric"):
        metrics.publish_metric("mine", "d", 4)
    assert kept.names() == [("torchelastic", "a"), ("mine", "c"), ("mine", "d")]
    assert metrics.getStream("other").handler.names() == [("other", "b")]
    assert [value.value for value in kept.values] == [1, 3, 4]


@metrics.prof
def measured(x):
    return 1 / x


class Object:
    @metrics.prof(group="mine")
    def method(self):
        return 3


def test_functions_are_measured(kept):
    assert measured(2) == 0.5 and Object().method() == 3
    with pytest.raises(ZeroDivisionError):
        measured(0)
    assert kept.names() == [
        ("torchelastic", "test_metrics.measured.duration.ms"), ("torchelastic", "test_metrics.measured.success"),
        ("mine", "Object.method.duration.ms"), ("mine", "Object.method.success"),
        ("torchelastic", "test_metrics.measured.failure"), ("torchelastic", "test_metrics.measured.duration.ms"),
    ]  # fmt: skip
    assert all(value.value >= 0 for value in kept.values)


def test_the_console(capsys):
    metrics.ConsoleMetricHandler().emit(metrics.MetricData(1.5, "g", "n", 2))
    assert capsys.readouterr().out == "[1.5][g]: n=2\n"
