"""Call paths of docs/architecture.md: the files that a program enters, in the order of their first entry."""

import os
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
# Prints (statement, file, function) for the calls of the second training step, in their order.
FOLLOW_STEP = """
import sys
import torchlite as torch
from torchlite.nn.functional import cross_entropy

model = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, target = torch.randn(5, 4), torch.tensor([0, 1, 0, 1, 1])
names, entered = globals(), []
for step in range(2):
    for statement in {statements}:
        def enter(frame, event, argument):
            if event == "call" and step == 1:
                entered.append((statement, frame.f_code.co_filename, frame.f_code.co_qualname))

        code = compile(statement, "step", "exec")
        sys.settrace(enter)
        exec(code, names)
        sys.settrace(None)
for call in entered:
    print(*call, sep="\\t")
"""
STATEMENTS = (
    "out = model(x)", "loss = cross_entropy(out, target)", "optimizer.zero_grad()", "loss.backward()",
    "optimizer.step()",
)  # fmt: skip
WALKS = {"x + y": ("None", "x + y"), "z.backward()": ("x + y", "z.backward()")}


def listed_files(title: str) -> list[str]:
    """The files that a numbered list of the page names, one an item."""
    text = PAGE.read_text()
    start = text.index(f"**`{title}`**")
    items = re.findall(
        r"^\d+\. (`[^`]+`|\*[^*]+\*)", text[start : text.index("\n\n", text.index("\n1. ", start))], re.M
    )
    return [item.strip("`*") for item in items]


@pytest.mark.parametrize("title", WALKS)
def test_files_of_a_call(title):
    before, line = WALKS[title]
    code = FOLLOW.format(before=before, line=line)
    words, environment = [sys.executable, "-c", code], {**os.environ, "TORCHLITE_KEEP_FUNCTIONS": "0"}
    said = subprocess.run(words, capture_output=True, text=True, check=True, cwd=ROOT, env=environment).stdout
    went = []
    for name in said.splitlines():
        if name.startswith("<torchlite op"):
            went += [] if "the generated function" in went else ["the generated function"]
        elif "torchlite" in name and Path(name).is_relative_to(ROOT):
            went.append(Path(name).relative_to(ROOT).as_posix())
    assert listed_files(title) == went
    assert len(set(went)) == len(went)


def test_functions_of_a_training_step():
    """Each function that the page lists for a statement is entered, after those that the page lists before it."""
    text = PAGE.read_text().partition("### The life of a training step")[2].partition("\n### ")[0]
    code = FOLLOW_STEP.format(statements=STATEMENTS)
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT).stdout
    calls = [line.split("\t") for line in printed.splitlines()]
    for statement in STATEMENTS:
        part = text.partition(f"**`{statement}`**")[2].partition("\n**`")[0]
        listed = re.findall(r"^\d+\. `([^`]+)`, `([^`]+)`", part, re.M)
        assert len(listed) == len(re.findall(r"^\d+\. ", part, re.M)) > 1
        entered = iter([(file, name) for which, file, name in calls if which == statement])
        for file, name in listed:
            path = str(ROOT / file)
            assert any(f == path and n.partition(".<locals>")[0] == name for f, n in entered), (statement, file, name)
