"""JSON bodies, as orjson reads them where it is installed."""

from __future__ import annotations

import json

import pytest

from torchlite.serve import _protocol
from torchlite.serve._errors import InvalidRequest

TEXTS = [
    '{"inputs": [{"shape": [1, 2], "data": [1, -2.5, 1e-3]}], "é": "\\u00e9"}', '[true, false, null, "", 0.1, -0]',
    "[NaN, Infinity, -Infinity]", '["\\ud800"]', "[1e400]", '{"a": 1, "a": 2}', "[18446744073709551615]", " [1]\n",
]  # fmt: skip
BAD = [b"", b"{", b"[1,]", b"\xff", b'"\xff"', b"[" * 100_000, b"[01]", b"'a'", b"[1] 2"]


@pytest.fixture(params=["json", "orjson"])
def reader(request, monkeypatch):
    quick = None
    if request.param == "orjson":
        quick = pytest.importorskip("orjson").loads
    monkeypatch.setattr(_protocol, "_quick_loads", quick)


@pytest.mark.parametrize("text", TEXTS)
def test_both_readers_give_the_same_values(reader, text):
    assert repr(_protocol.parse_json(text.encode())) == repr(json.loads(text))
    assert repr(_protocol.parse_json(memoryview(text.encode()))) == repr(json.loads(text))


@pytest.mark.parametrize("body", BAD)
def test_both_readers_refuse_the_same_bodies(reader, body):
    with pytest.raises(InvalidRequest, match="the body is"):
        _protocol.parse_json(body)


def test_numbers_that_no_datatype_has_are_refused(reader):
    """orjson reads them as floating point."""
    for word in ("18446744073709551616", "-9223372036854775809"):
        body = b'{"inputs": [{"name": "x", "shape": [1], "datatype": "INT64", "data": [%s]}]}' % word.encode()
        with pytest.raises(InvalidRequest, match="whole numbers from"):
            _protocol.infer_request_of(body, None, 100)
