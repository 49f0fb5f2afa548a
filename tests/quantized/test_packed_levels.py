"""Levels of fewer than eight bits, embeddings and recurrent ops answer what PyTorch answered
(`tools/record_quantized_tensors.py`), and their objects are saved as PyTorch's.
"""

import copy
import io
import json
import pickle

import pytest

import torchlite as torch
from tests.quantized import packed_cases

RECORDED = json.loads(packed_cases.ANSWERS.read_text())


def _assert_near(found, expected):
    if isinstance(expected, list):
        assert isinstance(found, list) and len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _assert_near(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=2e-6, abs=1e-6)
    else:
        assert found == expected


def test_all_programs_are_recorded():
    assert list(RECORDED) == list(packed_cases.programs(torch))


@pytest.mark.parametrize("name", packed_cases.programs(torch))
def test_programs_answer_as_in_pytorch(name):
    _assert_near(json.loads(json.dumps(packed_cases.answer(torch, name))), RECORDED[name])


@pytest.mark.parametrize("weights_only", [True, False])
def test_files_of_pytorch_are_read(weights_only):
    found, own = torch.load(packed_cases.WRITTEN, weights_only=weights_only), packed_cases.written(torch)
    assert torch.equal(found["levels"], own["levels"]) and torch.equal(found["quarters"], own["quarters"])
    for name in ("linear", "rows", "cell"):
        assert type(found[name]) is type(own[name]) and str(found[name]) == str(own[name])
        _assert_near(packed_cases._plain(found[name].__getstate__()), packed_cases._plain(own[name].__getstate__()))


def _through_file(value):
    stream = io.BytesIO()
    torch.save(value, stream)
    stream.seek(0)
    return torch.load(stream)


@pytest.mark.parametrize("copied", [_through_file, copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
def test_levels_and_packed_parameters_are_copied(copied):
    own = packed_cases.written(torch)
    found = copied(own)
    assert torch.equal(found["levels"], own["levels"]) and found["levels"].dtype is torch.quint4x2
    assert found["levels"].untyped_storage().nbytes() == 9
    for name in ("linear", "rows", "cell"):
        assert type(found[name]) is type(own[name])
        _assert_near(packed_cases._plain(found[name].__getstate__()), packed_cases._plain(own[name].__getstate__()))


def test_saved_objects_have_the_classes_of_pytorch():
    stream = io.BytesIO()
    torch.save(packed_cases.written(torch), stream, _use_new_zipfile_serialization=False)
    text = stream.getvalue()
    assert text.count(b"ctorch\nScriptObject") == 1 and b"torchlite" not in text  # the others refer to the first name
    assert b"__torch__.torch.classes.rnn.CellParamsBase" in text


@pytest.mark.parametrize(
    "state",
    [
        None,
        (1, 2),
        ((), "__torch__.torch.classes.quantized.LinearPackedParamsBase"),
        ((torch.ones(2, 2), None), "__torch__.torch.classes.quantized.Conv2dPackedParamsBase"),
        (("2", [torch.zeros(3, dtype=torch.int16), torch.ones(1)], [None]),
         "__torch__.torch.classes.quantized.Conv2dPackedParamsBase"),
        ((1, [torch.ones(2)], [], [8]), "__torch__.torch.classes.quantized.EmbeddingPackedParamsBase"),
        (("quantized_dynamic", [], [], [1], [1, 2]), "__torch__.torch.classes.rnn.CellParamsBase"),
        ((), "__torch__.torch.classes.other.Class"),
    ],
)  # fmt: skip
def test_damaged_objects_are_refused(state):
    from torchlite._serialization.script_objects import ScriptObjectInFile

    with pytest.raises((RuntimeError, pickle.UnpicklingError)):
        ScriptObjectInFile().__setstate__(state)


def test_too_few_bytes_are_refused():
    from torchlite._quantized import rebuild

    with pytest.raises(RuntimeError, match="too few"):
        rebuild(torch.zeros(3, dtype=torch.uint8), (torch.per_tensor_affine, 0.1, 0), (torch.quint4x2, (2, 4)))


def test_levels_have_half_a_byte_each():
    q = torch.quantize_per_tensor(torch.ones(64, 64), 0.1, 0, torch.quint4x2)
    assert q.untyped_storage().nbytes() == 2048 and q.int_repr().shape == (2048,)


def test_moved_levels_stay_equal(device):
    q = packed_cases.levels(torch, None, torch.quint4x2)
    assert torch.equal(q.to(device).dequantize().cpu(), q.dequantize())
