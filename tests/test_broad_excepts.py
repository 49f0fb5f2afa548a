"""`except Exception` and broader clean up and raise again, or a comment explains why they catch every error."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BROAD = {"Exception", "BaseException"}


def _is_broad(handler: ast.ExceptHandler) -> bool:
    kinds = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(kind is None or isinstance(kind, ast.Name) and kind.id in BROAD for kind in kinds)


def _unexplained(text: str) -> list[int]:
    """The lines of broad handlers that neither end in `raise` nor have a comment."""
    lines = text.splitlines()
    return [
        node.lineno
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ExceptHandler)
        and _is_broad(node)
        and not (isinstance(node.body[-1], ast.Raise) and node.body[-1].exc is None)
        and "  # " not in lines[node.lineno - 1]
    ]


@pytest.mark.parametrize("folder", ["torchlite", "backends"])
def test_broad_excepts_are_explained(folder):
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / folder).rglob("*.py"))
        for line in _unexplained(path.read_text())
    ]
    assert not found, f"narrow these, or say why every error is meant: {', '.join(found)}"


@pytest.mark.parametrize(
    ("handler", "found"),
    [
        ("except Exception:\n    pass", 1),
        ("except:\n    pass", 1),
        ("except (ValueError, BaseException) as e:\n    pass", 1),
        ("except Exception:  # a reason\n    pass", 0),
        ("except Exception:\n    clean()\n    raise", 0),
        ("except ValueError:\n    pass", 0),
    ],
)
def test_the_rule(handler, found):
    assert len(_unexplained(f"try:\n    f()\n{handler}\n")) == found
