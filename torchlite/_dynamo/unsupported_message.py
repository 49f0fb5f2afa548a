"""Text of the error of `fullgraph=True`: PyTorch's name of a graph break, the reason, and the program's lines."""

from __future__ import annotations

import traceback

from .guards import is_known_module
from .program_ir import Frame
from .split_function import place_of_instruction

# PyTorch's names of graph breaks, by words of the reason.
_NAMES = (
    ("torch.compiler.disable keeps", "Skip calling `torch.compiler.disable()`d function"),
    ("graph_break", "Call to `torch._dynamo.graph_break()`"),
    ("it calls print", "Failed to trace builtin operator"),
    ("a condition depends on elements", "Data-dependent branching"),
    ("the shape of what", "Dynamic shape operator"),
    ("backward pass", "Unsupported Tensor.backward() call"),
)
_ITEM = "Unsupported Tensor.item() call with capture_scalar_outputs=False"


def unsupported_message(why: str, place: str, frames: tuple[Frame, ...]) -> str:
    """Return the text for a reason. frames: the calls in progress where the capture failed."""
    own = [frame for frame in frames if not is_known_module(frame.module)]
    places = [place_of_instruction(frame.code, frame.place) for frame in own]
    name = next((name for words, name in _NAMES if words in why), "")
    if not name and "elements are read" in why:
        name = "Data-dependent branching" if places and places[-1][1] else _ITEM
    stack = [
        traceback.FrameSummary(frame.code.co_filename, at[0], frame.code.co_name)
        for frame, (at, _) in zip(own, places, strict=True)
        if at is not None
    ]
    path, _, line = place.rpartition(":")
    if not stack and line.isdigit():
        stack = [traceback.FrameSummary(path, int(line), "<function>")]
    reason = f"{why} ({place})" if place else why
    text = f"{name or 'Unsupported code'}\n  Explanation: {reason}\n"
    return f"{text}\nfrom user code:\n {' '.join(traceback.format_list(stack))}" if stack else text
