"""Defaults in a schema: what Python writes, and torch's own constants."""

import pytest

import torchlite as torch
from torchlite._dispatch.op_record import parse_schema


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("None", None),
        ("1e-5", 1e-5),
        ("(1, 2)", (1, 2)),
        ("'mean'", "mean"),
        ("inf", float("inf")),
        ("torch.preserve_format", torch.preserve_format),
        ("torch.strided", torch.strided),
        ("torch.float32", torch.float32),
    ],
)
def test_defaults_are_parsed(text, value):
    (param,) = parse_schema(f"example(option={text})")
    assert param.name == "option" and param.default == value


def test_an_unknown_constant_is_an_error():
    with pytest.raises(KeyError):
        parse_schema("example(option=torch.nonsense)")
