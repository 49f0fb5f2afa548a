"""`signatures.txt`: the recorded signatures of the functions that PyTorch's parser parses, by public name.
`tools/record_signatures.py` writes it.
"""

from __future__ import annotations

import functools
import os


@functools.cache
def lines() -> dict[str, str]:
    """{public name: signatures}."""
    with open(os.path.join(os.path.dirname(__file__), "signatures.txt"), encoding="utf-8") as file:
        text = file.read()
    return dict(line.split(":", 1) for line in text.splitlines())


def split_at_commas(text: str) -> list[str]:
    """Split at the commas outside brackets and quotes."""
    parts, depth, start, quote = [], 0, 0, ""
    for position, letter in enumerate(text):
        if quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in "([{":
            depth += 1
        elif letter in ")]}":
            depth -= 1
        elif letter == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    parts.append(text[start:])
    return [part.strip() for part in parts if part.strip()]


def names_of_forms(public: str) -> list[list[tuple[str, str]]]:
    """The type and name of each parameter, by signature; deprecated signatures are left out."""
    forms = []
    for form in lines()[public].split(" | "):
        if not form.endswith("|deprecated"):
            heads = [part.partition("=")[0] for part in split_at_commas(form.strip()) if part != "*"]
            forms.append([(kind, name) for kind, _, name in (head.rpartition(" ") for head in heads)])
    return forms


def positional_count(public: str) -> int:
    """The greatest number of positional arguments of a signature, with the tensor of a method."""
    forms = [split_at_commas(form.removesuffix("|deprecated").strip()) for form in lines()[public].split(" | ")]
    counts = [form.index("*") if "*" in form else len(form) for form in forms]
    return max(counts) + public.startswith("Tensor.")
