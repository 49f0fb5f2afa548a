"""Output of SummaryWriter, on a stand-in for TensorBoard's protocol buffers; the numbers are PyTorch's."""

import sys
from types import ModuleType

import numpy as np
import pytest

import torchlite as torch
from torchlite.utils.tensorboard import _image_encoding, _plugin_summaries, _tensorboard_imports, summary
from torchlite.utils.tensorboard._embedding import write_embedding


class Kind:
    """Stores the fields of a message."""

    def __init__(self, **fields):
        vars(self).update(fields)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        if name in ("VERTEX", "FACE", "COLOR"):
            return ("UNDEFINED", "VERTEX", "FACE", "COLOR").index(name)
        return Kind

    def SerializeToString(self):
        return repr(sorted(vars(self).items())).encode()


for _name in ("VERTEX", "FACE", "COLOR", "PluginData", "Value", "Image", "Audio", "Dim", "Series"):
    setattr(Kind, _name, getattr(Kind(), _name))


@pytest.fixture(autouse=True)
def messages(monkeypatch):
    for module in (_plugin_summaries, _tensorboard_imports, summary):
        monkeypatch.setattr(module, "import_proto", lambda name: Kind())


def test_protocol_buffers_are_found_in_either_package(monkeypatch):
    monkeypatch.undo()
    for name in [name for name in sys.modules if name.startswith("tensorboard")]:
        monkeypatch.delitem(sys.modules, name)
    parts = ("tensorboard", "plugins", "text", "plugin_data_pb2")
    for end in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:end]), ModuleType(".".join(parts[:end])))
    assert _tensorboard_imports.import_proto("plugin_text_pb2").__name__ == "tensorboard.plugins.text.plugin_data_pb2"


def test_precision_and_recall():
    labels, predictions = torch.tensor([0, 1, 1, 0]), torch.tensor([0.1, 0.9, 0.4, 0.5])
    made = summary.pr_curve("pr", labels, predictions, 5, weights=torch.tensor([1.0, 2.0, 1.0, 1.0]))
    rows = np.array(made.value[0].tensor.float_val).reshape(6, 5)
    expected = [
        [3, 3, 2, 2, 0], [2, 1, 1, 0, 0], [0, 1, 1, 2, 2], [0, 0, 1, 1, 3], [0.6, 0.75, 2 / 3, 1, 0],
        [1, 1, 2 / 3, 2 / 3, 0],
    ]  # fmt: skip
    np.testing.assert_allclose(rows, expected, atol=1e-6)


def test_histograms_begin_with_an_empty_bin():
    made = summary.make_histogram(np.arange(10), "auto", 5)
    assert made.bucket == [0, 2, 2, 2, 2, 2] and made.bucket_limit[:2] == [0, 1.8]
    made = summary.make_histogram(np.array([3.0]), np.arange(6))
    assert made.bucket == [0, 1] and made.bucket_limit == [3, 4] and made.num == 1


def test_tensors():
    made = summary.tensor_proto("t", torch.tensor([[1, 2], [3, 4]])).value[0].tensor
    assert made.dtype == "DT_INT64" and made.int64_val == [1, 2, 3, 4]
    assert [dim.size for dim in made.tensor_shape.dim] == [2, 2]
    made = summary.tensor_proto("t", torch.tensor([1 + 2j])).value[0].tensor
    assert made.dtype == "DT_COMPLEX64" and made.scomplex_val == [1.0, 2.0]
    with pytest.raises(ValueError, match="not supported by TensorBoard"):
        summary.tensor_proto("t", np.array(["a"]))


def test_sound():
    made = summary.audio("a", torch.tensor([[0.5, -2.0, 1.0]]), 8000).value[0].audio
    assert made.length_frames == 3 and made.encoded_audio_string[:4] == b"RIFF"
    assert np.frombuffer(made.encoded_audio_string[-6:], "<i2").tolist() == [16383, -32767, 32767]
    with pytest.raises(AssertionError, match="input tensor should be 1 dimensional"):
        summary.audio("a", torch.zeros(2, 3))


def test_meshes():
    made = summary.mesh("m", torch.zeros(1, 4, 3), colors=torch.zeros(1, 4, 3, dtype=torch.uint8)).value
    assert [value.tag for value in made] == ["m_VERTEX", "m_COLOR"]
    assert b"('components', 10)" in made[1].metadata.plugin_data.content


def test_charts():
    made = summary.custom_scalars({"c": {"l": ["Multiline", ["a", "b"]], "m": ["Margin", ["a", "b", "c"]]}})
    assert made.value[0].tag == "custom_scalars__config__"
    with pytest.raises(ValueError, match="three tags"):
        summary.custom_scalars({"c": {"m": ["Margin", ["a", "b"]]}})


def test_pictures():
    images = np.arange(5 * 3 * 4 * 4).reshape(5, 3, 4, 4)
    joined = _image_encoding.to_image(images, "NCHW")
    assert joined.shape == (4, 20, 3) and (joined[:, 4:8] == images[1].transpose(1, 2, 0)).all()
    rows = _image_encoding.make_grid(np.ones((10, 2, 3, 1)))
    assert rows.shape == (4, 24, 1) and rows[2:, 6:].sum() == 0 and rows[2:, :6].all()
    assert _image_encoding.to_image(np.ones((4, 5)), "HW").shape == (4, 5, 3)
    assert _image_encoding.to_uint8(np.array([0.5, 2.0, -1.0])).tolist() == [127, 255, 0]
    for array, order, message in (
        (np.ones((4, 5)), "HH", "twice"), (np.ones((4, 5)), "HWC", "are different"), (np.ones((4, 5)), "HX", "got HX"),
    ):  # fmt: skip
        with pytest.raises(AssertionError, match=message):
            _image_encoding.to_image(array, order)


def test_embeddings(tmp_path):
    write_embedding(tmp_path, "00005/e", "e:00005", np.arange(4.0).reshape(2, 2), ["a", "b"], None, None)
    write_embedding(tmp_path, "00000/d", "d:00000", np.ones((1, 2)), [["a", 1]], ["x", "y"], None)
    assert (tmp_path / "00005/e/tensors.tsv").read_text() == "0.0\t1.0\n2.0\t3.0\n"
    assert (tmp_path / "00005/e/metadata.tsv").read_text() == "a\nb\n"
    assert (tmp_path / "00000/d/metadata.tsv").read_text() == "x\ty\na\t1\n"
    text = (tmp_path / "projector_config.pbtxt").read_text()
    assert text.count("embeddings {") == 2 and 'metadata_path: "00005/e/metadata.tsv"' in text
    with pytest.raises(AssertionError, match="#labels should equal"):
        write_embedding(tmp_path, "x", "x", np.ones((1, 2)), ["a", "b"], None, None)
