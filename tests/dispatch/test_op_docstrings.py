"""Docstrings of ops: the record's text and the arguments that many ops share."""

import inspect

import torchlite
from torchlite._dispatch.op_docstrings import documented_arguments, sections, with_common_arguments

OWN = """Scales the input.

    Args:
        factor: The factor. A second
            line: with a colon.
        low, high: The bounds.

    Example:
        >>> 1
        1
    """


def test_sections_by_title():
    assert sections("A text.\n\nArgs:\n    x: A number.\n\nSee also:\n    `add`.") == {
        "": "A text.\n\n",
        "Args": "\n    x: A number.\n\n",
        "See also": "\n    `add`.",
    }


def test_items_of_several_lines_and_several_names():
    args = sections(inspect.cleandoc(OWN))["Args"]
    assert documented_arguments(args) == {
        ("factor",): "The factor. A second\n        line: with a colon.",
        ("low", "high"): "The bounds.",
    }


def test_common_arguments_join_in_the_order_of_the_signature():
    text = with_common_arguments(OWN, ["input", "factor", "low", "high", "keepdim", "unknown"])
    assert text == (
        "Scales the input.\n\n"
        "Args:\n"
        "    input: The input tensor.\n"
        "    factor: The factor. A second\n        line: with a colon.\n"
        "    low, high: The bounds.\n"
        "    keepdim: Whether the result keeps the reduced dimensions with size 1.\n\n"
        "Example:\n    >>> 1\n    1"
    )


def test_an_op_without_sections_has_the_common_arguments():
    assert with_common_arguments("The sum.", ["input"]) == "The sum.\n\nArgs:\n    input: The input tensor."
    assert with_common_arguments("Nothing.", []) == "Nothing."


def test_functions_and_in_place_methods():
    assert "\nArgs:\n    input: The input tensor.\n    dim: " in torchlite.sort.__doc__
    text = torchlite.Tensor.add_.__doc__
    assert text.startswith("add_(self, other, *, alpha=1)\n\nIn-place version of `add`: ")
    assert "\n    other: " in text and "\n    out: " not in text and "\n    input: " not in text
