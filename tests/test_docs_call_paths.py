"""Call paths of docs/architecture.md: the files that a program enters, in the order of their first entry."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "architecture.md"
# Prints the project's files whose code runs, in the order in which they are first entered.
FOLLOW = """
import sys
import torchlite as torch

x, y = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0)
z = {before}
entered = {{}}
sys.settrace(lambda frame, event, argument: entered.setdefault(frame.f_code.co_filename) if event == "call" else None)
{line}
sys.settrace(None)
print(*entered, sep="\\n")
"""
WALKS = {"x + y": ("None", "x + y"), "z.backward()": ("x + y", "z.backward()")}


def told(title: str) -> list[str]:
    """The files that a numbered list of the page names, one an item."""
    text = PAGE.read_text()
    start = text.index(f"**`{title}`**")
    items = re.findall(
        r"^\d+\. (`[^`]+`|\*[^*]+\*)", text[start : text.index("\n\n", text.index("\n1. ", start))], re.M
    )
    return [item.strip("`*") for item in items]


@pytest.mark.parametrize("title", WALKS)
def test_a_walk_is_what_it_says(title):
    before, line = WALKS[title]
    code = FOLLOW.format(before=before, line=line)
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    went = []
    for name in said.splitlines():
        if name.startswith("<torchlite op"):
            went += [] if "the generated function" in went else ["the generated function"]
        elif "torchlite" in name and Path(name).is_relative_to(ROOT):
            went.append(Path(name).relative_to(ROOT).as_posix())
    assert told(title) == went
    assert len(set(went)) == len(went)
