"""`torch.utils._traceback` and `torch.utils._mode_utils`."""

from __future__ import annotations

import pickle
import traceback

import pytest

import torchlite as torch
from torchlite.utils import _mode_utils, _traceback
from torchlite.utils._python_dispatch import TorchDispatchMode


def innermost():
    return _traceback.CapturedTraceback.extract()


def test_captured_frames():
    found = innermost()
    last = found.summary()[-1]
    assert last.name == "innermost" and last.filename == __file__
    assert found.format()[-1] == f'  File "{__file__}", line {last.lineno}, in innermost\n    {last.line}\n'
    assert _traceback.CapturedTraceback.format_all([found, None]) == [found.format(), None]
    assert _traceback.CapturedTraceback.extract(skip=1).summary()[-1].name != "test_captured_frames"
    assert pickle.loads(pickle.dumps(found)).summary() == []
    found.cleanup()
    assert found.format() == []


def test_short_places():
    assert _traceback.shorten_filename("/a/b/c.py", base="/a") == "b/c.py"
    assert _traceback.shorten_filename("/x/c.py", base="/a") == "/x/c.py"
    assert _traceback.shorten_filename(torch.__file__) == "torchlite/__init__.py"
    try:
        innermost().no_such_name
    except AttributeError as error:
        short = _traceback.format_traceback_short(error.__traceback__)
        frame = traceback.extract_tb(error.__traceback__)[-1]
    assert short.endswith(f":{frame.lineno} in test_short_places")
    assert _traceback.format_frame(frame, line=True).startswith(f"{frame.line}  # ")


def test_generated_code_is_shown():
    text = "def fails():\n    raise ValueError('here')\n"
    names = {"__compile_source__": text}
    exec(compile(text, "<generated for a test>", "exec"), names)
    with pytest.raises(ValueError, match="here") as caught, _traceback.report_compile_source_on_error():
        names["fails"]()
    assert "raise ValueError('here')" in "".join(traceback.format_exception(caught.value))


def test_modes():
    class Counting(TorchDispatchMode):
        count = 0

        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            self.count += 1
            return func(*args, **(kwargs or {}))

    x = torch.ones(2)
    with Counting() as mode:
        x + 1
        with _mode_utils.no_dispatch():
            x + 1
    assert mode.count == 1 and _mode_utils.all_same_mode([mode, mode]) and not _mode_utils.all_same_mode([mode, 1])
