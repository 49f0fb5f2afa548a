"""Checkpoints of one process: what is written, read, refused, and left as it was."""

import contextlib
import io
import itertools
import os
import pathlib
import pickle
import random
import warnings

import pytest

import torchlite as torch
import torchlite.distributed as dist
import torchlite.distributed.checkpoint as dcp
import torchlite.distributed.tensor
from torchlite import nn
from torchlite.distributed.checkpoint import _metadata_file, filesystem, format_utils
from torchlite.distributed.checkpoint.default_planner import create_default_local_save_plan
from torchlite.distributed.checkpoint.metadata import ChunkStorageMetadata, MetadataIndex
from torchlite.distributed.checkpoint.planner_helpers import create_read_items_for_chunk_list
from torchlite.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_state_dict,
)
from torchlite.distributed.checkpoint.state_dict_loader import _load_state_dict_from_keys

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def state():
    wide = torch.arange(12.0).reshape(3, 4)
    return {
        "model": {"weight": wide[:, 1:3], "none": torch.zeros(0, 3), "scalar": torch.tensor(5.0)},
        "list": [1, torch.ones(2, dtype=torch.bfloat16), {"deep": torch.arange(3)}],
        "plain": {"step": 7, "pair": (1, 2.5), "text": "é", "numbers": [1, 2], "empty": {}},
    }


def zeroed(value):
    if isinstance(value, torch.Tensor):
        return torch.zeros_like(value)
    if isinstance(value, dict):
        return {key: zeroed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [zeroed(item) for item in value]
    return None


def same(a, b):
    if isinstance(a, torch.Tensor):
        return a.dtype == b.dtype and torch.equal(a, b)
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(map(same, a, b))
    return a == b


def failure(function, *args, **kwargs):
    with pytest.raises(dcp.CheckpointException) as found:
        function(*args, **kwargs)
    return found.value.failures[0][0]


@pytest.mark.parametrize("options", [{}, {"thread_count": 3}, {"single_file_per_rank": False, "thread_count": 2}])
def test_save_then_load(tmp_path, options):
    saved = state()
    described = dcp.save(saved, storage_writer=dcp.FileSystemWriter(tmp_path / "new" / "one", **options))
    assert "model.weight" in described.state_dict_metadata and "plain.empty" not in described.planner_data
    loaded = zeroed(saved)
    places = loaded["model"]["weight"], loaded["list"][2]["deep"]
    dcp.load(loaded, checkpoint_id=tmp_path / "new" / "one")
    assert same(loaded, saved)
    assert loaded["model"]["weight"] is places[0] and loaded["list"][2]["deep"] is places[1]
    del saved["plain"]["empty"]
    assert same(_load_state_dict_from_keys(checkpoint_id=tmp_path / "new" / "one"), saved)
    assert _load_state_dict_from_keys("plain.pair", checkpoint_id=tmp_path / "new" / "one") == {
        "plain": {"pair": (1, 2.5)}
    }


def test_only_the_part_of_a_storage_is_written(tmp_path):
    dcp.save({"x": torch.zeros(1000, 1000)[:2]}, checkpoint_id=tmp_path)
    assert (tmp_path / "__0_0.distcp").stat().st_size < 20_000


def test_without_memory_and_with_other_dtypes(tmp_path):
    dcp.save({"x": torch.arange(3.0)}, checkpoint_id=tmp_path)
    loaded = {"x": torch.zeros(3, device="meta")}
    dcp.load(loaded, checkpoint_id=tmp_path)
    assert loaded["x"].tolist() == [0, 1, 2]
    loaded = {"x": torch.zeros(3, dtype=torch.int64)}
    dcp.load(loaded, checkpoint_id=tmp_path)
    assert loaded["x"].tolist() == [0, 1, 2]


def test_mistakes(tmp_path):
    dcp.save({"x": torch.arange(4.0), "n": 3}, checkpoint_id=tmp_path)
    for asked, kind, words in (
        ({"y": torch.ones(1)}, RuntimeError, "Missing key in checkpoint state_dict: y."),
        ({"x": torch.ones(3)}, ValueError, r"Size mismatch between saved torch.Size([4]) and current: torch.Size([3])"),
        ({"x": 3}, ValueError, "Invalid checkpoint metadata for x, expected BytesStorageMetadata but found"),
    ):
        error = failure(dcp.load, asked, checkpoint_id=tmp_path)
        assert type(error) is kind and words in str(error)
    partial = {"x": torch.zeros(4), "y": 1}
    dcp.load(partial, checkpoint_id=tmp_path, planner=dcp.DefaultLoadPlanner(allow_partial_load=True))
    assert partial["x"].tolist() == [0, 1, 2, 3] and partial["y"] == 1
    error = failure(dcp.save, {"x": 1}, storage_writer=dcp.FileSystemWriter(tmp_path, overwrite=False))
    assert str(error) == "Checkpoint already exists and self.overwrite=False."
    for call in (dcp.save, dcp.load):
        with pytest.raises(RuntimeError, match="`checkpoint_id` must be specified if storage_reader/storage_writer is"):
            call({"x": 1})
    error = failure(dcp.load, {"x": 1}, checkpoint_id=tmp_path / "absent")
    assert type(error) is AssertionError and "global metadata read failed: [Errno 2]" in str(error)
    with pytest.warns(UserWarning, match="assuming the intent is to save in a single process"):
        dcp.save({"x": 1}, checkpoint_id=tmp_path / "other")
    with pytest.raises(dcp.CheckpointException, match=r"ranks:dict_keys\(\[0\]\)\n(.|\n)*Missing key"):
        dcp.load({"y": 1}, checkpoint_id=tmp_path)


def test_a_save_that_fails_leaves_the_checkpoint_that_was_there(tmp_path, monkeypatch):
    dcp.save({"x": torch.zeros(4), "n": 1}, checkpoint_id=tmp_path)

    def fails(*args):
        raise OSError("the disk is full")

    for name, place in (("rename", filesystem.FileSystem), ("_copy_to_host", filesystem)):
        with monkeypatch.context() as patch:
            patch.setattr(place, name, fails)
            assert "disk is full" in str(failure(dcp.save, {"x": torch.ones(4), "n": 2}, checkpoint_id=tmp_path))
        loaded = {"x": torch.ones(4), "n": 0}
        dcp.load(loaded, checkpoint_id=tmp_path)
        assert loaded["x"].tolist() == [0] * 4 and loaded["n"] == 1
    for number in range(2, 5):
        dcp.save({"x": torch.full((4,), float(number)), "n": number}, checkpoint_id=tmp_path)
        dcp.load(loaded, checkpoint_id=tmp_path)
        assert loaded["x"].tolist() == [number] * 4 and loaded["n"] == number
        assert len(list(tmp_path.iterdir())) == 2  # the last one's files are gone


def test_stateful_and_in_the_background(tmp_path):
    model, other = nn.Linear(2, 2), nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.5, momentum=0.9)
    future = dcp.async_save({"model": model, "optimizer": optimizer, "n": 1}, checkpoint_id=tmp_path)
    before = model.weight.detach().clone()
    with torch.no_grad():
        model.weight.zero_()  # the save has a copy
    assert "model.weight" in future.result().state_dict_metadata
    dcp.load({"model": other, "n": 0}, checkpoint_id=tmp_path)
    assert torch.equal(other.weight, before)
    staged = dcp.async_save({"x": before}, checkpoint_id=tmp_path / "two", async_stager=dcp.staging.DefaultStager())
    staged.staging_completion.result()
    staged.upload_completion.result()
    assert torch.equal(_load_state_dict_from_keys("x", checkpoint_id=tmp_path / "two")["x"], before)


def test_each_rank_for_itself(tmp_path):
    for number in (1, 2):
        dcp.save({"x": torch.arange(3.0) * number, "n": number}, checkpoint_id=tmp_path, use_collectives=False)
        assert ".metadata" not in os.listdir(tmp_path) and "__0.metadata" in os.listdir(tmp_path)
        loaded = {"x": torch.zeros(3), "n": 0}
        dcp.load(loaded, checkpoint_id=tmp_path)
        assert loaded["x"].tolist() == [0, number, 2 * number] and loaded["n"] == number


def test_as_one_file_and_back(tmp_path):
    saved = state()
    del saved["plain"]["empty"]
    torch.save(saved, tmp_path / "one.pt")
    format_utils.torch_save_to_dcp(tmp_path / "one.pt", tmp_path / "parts")
    format_utils.dcp_to_torch_save(tmp_path / "parts", tmp_path / "two.pt")
    assert same(torch.load(tmp_path / "two.pt"), saved)
    torch.save({"x": torch.arange(4.0)}, tmp_path / "flat.pt")
    loaded = {"x": torch.zeros(4)}
    reader = format_utils.BroadcastingTorchSaveReader(tmp_path / "flat.pt")
    dcp.load(loaded, storage_reader=reader, planner=format_utils.DynamicMetaLoadPlanner())
    assert loaded["x"].tolist() == [0, 1, 2, 3]


def test_boxes_that_meet():
    """Every way to cut a tensor in boxes fills every other way to cut it."""
    size = torch.Size((7, 5))
    whole = torch.arange(35).reshape(size)
    chunk = lambda top, left, height, width: dcp.ChunkStorageMetadata(
        torch.Size((top, left)), torch.Size((height, width))
    )
    cuts = [
        [chunk(0, 0, 7, 5)],
        [chunk(0, 0, 3, 5), chunk(3, 0, 4, 5), chunk(7, 0, 0, 5)],
        [chunk(0, 0, 7, 2), chunk(0, 2, 7, 3)],
        [chunk(row, column, 1, 1) for row in range(7) for column in range(5)],
    ]
    box = lambda tensor, begin, lengths: filesystem.narrow_to_box(tensor, begin, lengths)
    for stored in cuts:
        described = dcp.TensorStorageMetadata(None, size, stored)
        for wanted in cuts:
            got = [torch.zeros(tuple(part.sizes), dtype=torch.int64) for part in wanted]
            for item in create_read_items_for_chunk_list("x", described, wanted):
                source = stored[item.storage_index.index]
                data = box(box(whole, source.offsets, source.sizes), item.storage_offsets, item.lengths)
                box(got[item.dest_index.index], item.dest_offsets, item.lengths).copy_(data)
            assert all(torch.equal(box(whole, p.offsets, p.sizes), g) for p, g in zip(wanted, got, strict=True))


# -- files of other origin


class Runs:
    """A pickle of it would make a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def hostile(tmp_path, metadata):
    (tmp_path / ".metadata").write_bytes(metadata)
    error = failure(dcp.load, {"x": torch.zeros(4)}, checkpoint_id=tmp_path)
    assert type(error) is pickle.UnpicklingError, error
    return str(error)


def test_nothing_of_the_metadata_is_run(tmp_path):
    dcp.save({"x": torch.zeros(4), "n": 3}, checkpoint_id=tmp_path)
    good = (tmp_path / ".metadata").read_bytes()
    traps = [pickle.dumps(Runs(tmp_path / "trap"), protocol) for protocol in (2, 4)]
    for trap in traps:
        assert "mkdir" in hostile(tmp_path, trap)
    assert "are not whole" in hostile(tmp_path, good[:-20])
    assert "no state dict" in hostile(tmp_path, pickle.dumps({"x": 1}))
    for name in ("eval", "getattr", "exec"):
        assert f"builtins.{name}" in hostile(tmp_path, pickle.dumps(__builtins__[name]))
    assert not (tmp_path / "trap").exists()


def test_metadata_that_lead_astray(tmp_path):
    (tmp_path / "secret").write_bytes(b"x" * 10_000)
    place = tmp_path / "one"
    dcp.save({"x": torch.zeros(4), "n": 3}, checkpoint_id=place)
    good = (place / ".metadata").read_bytes()

    def changed(change):
        metadata = _metadata_file.parse_metadata(good, filesystem._OWN)
        change(metadata)
        return hostile(place, _metadata_file.serialize_metadata(metadata))

    def lies_in(name):
        return lambda found: [setattr(at, "relative_path", name) for at in found.storage_data.values()]

    for name in ("../secret", "/etc/passwd", "..", "a\0b"):
        assert "lies in no file of the folder" in changed(lies_in(name))
    tensor = lambda found: found.state_dict_metadata["x"]
    assert "not all there" in changed(lambda found: setattr(tensor(found), "size", torch.Size((1 << 40,))))
    assert "no tensor in parts" in changed(lambda found: setattr(tensor(found), "size", torch.Size((2,))))
    assert "no tensor in parts" in changed(lambda found: setattr(tensor(found), "chunks", None))
    halves = [ChunkStorageMetadata(torch.Size((at,)), torch.Size((2,))) for at in (0, 0)]
    assert "lie over each other" in changed(lambda found: setattr(tensor(found), "chunks", halves))
    assert "no names and numbers" in changed(lambda found: found.planner_data.update(x=("x", -1)))
    for far, said in ((1 << 24, "places that no path leads to"), (1 << 70, "no names and numbers")):
        assert said in changed(lambda found, far=far: found.planner_data.update(x=("x", far)))
    assert "neither a tensor" in changed(lambda found: found.state_dict_metadata.update(x=5))
    # Metadata that describe the file but not its contents.
    metadata = _metadata_file.parse_metadata(good, filesystem._OWN)
    del metadata.storage_data[MetadataIndex("x", (0,))]
    (place / ".metadata").write_bytes(_metadata_file.serialize_metadata(metadata))
    assert "does not say where" in str(failure(dcp.load, {"x": torch.zeros(4)}, checkpoint_id=place))


@pytest.mark.parametrize("name", [".metadata", "__0_0.distcp"])
def test_pipes_are_no_files(tmp_path, name):
    dcp.save({"x": torch.zeros(4)}, checkpoint_id=tmp_path)
    (tmp_path / name).unlink()
    os.mkfifo(tmp_path / name)
    assert "is a pipe" in str(failure(dcp.load, {"x": torch.zeros(4)}, checkpoint_id=tmp_path))


def test_objects_outside_the_safe_globals_are_refused(tmp_path):
    dcp.save({"x": torch.zeros(4), "n": pathlib.Path("a")}, checkpoint_id=tmp_path)
    error = failure(dcp.load, {"x": torch.zeros(4), "n": None}, checkpoint_id=tmp_path)
    assert type(error) is pickle.UnpicklingError and "add_safe_globals" in str(error)
    loaded = {"x": torch.zeros(4), "n": None}
    kind = type(pathlib.Path("a"))
    with torch.serialization.safe_globals([kind, (kind, "pathlib.PosixPath"), (kind, "pathlib._local.PosixPath")]):
        dcp.load(loaded, checkpoint_id=tmp_path)
    assert loaded["n"] == pathlib.Path("a")


def test_damaged_files_end_in_one_error(tmp_path):
    dcp.save({"x": torch.arange(4.0), "n": [3, 4]}, checkpoint_id=tmp_path)
    draw = torch.Generator().manual_seed(0)
    for name in (".metadata", "__0_0.distcp"):
        good = (tmp_path / name).read_bytes()
        for _ in range(60):
            at = int(torch.randint(len(good), (), generator=draw))
            (tmp_path / name).write_bytes(good[:at] + bytes([good[at] ^ 0x55]) + good[at + 1 :])
            with contextlib.suppress(dcp.CheckpointException):  # all else is an error of the test
                dcp.load({"x": torch.zeros(4), "n": None}, checkpoint_id=tmp_path)
        (tmp_path / name).write_bytes(good)


# -- states by names


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.last = nn.Linear(3, 4), nn.Linear(4, 2)
        self.first.bias.requires_grad_(False)

    def forward(self, x):
        return self.last(self.first(x).relu())


def test_states_of_models_and_optimizers(tmp_path):
    model, other = Net(), Net()
    of = lambda net: [torch.optim.Adam(net.first.parameters(), 0.1), torch.optim.SGD(net.last.parameters(), 0.2, 0.9)]
    mine, theirs = of(model), of(other)
    for flat in (False, True):
        model(torch.ones(2, 3)).sum().backward()
        for optimizer in mine:
            optimizer.step()
        options = StateDictOptions(flatten_optimizer_state_dict=flat)
        weights, moments = get_state_dict(model, mine, options=options)
        assert "state.last.weight.momentum_buffer" in moments if flat else "last.weight" in moments["state"]
        dcp.save({"weights": weights, "moments": moments}, checkpoint_id=tmp_path)
        empty = get_state_dict(other, theirs, options=options)
        loaded = {"weights": empty[0], "moments": empty[1]}
        dcp.load(loaded, checkpoint_id=tmp_path)
        set_state_dict(
            other, theirs, model_state_dict=loaded["weights"], optim_state_dict=loaded["moments"], options=options
        )
        assert same(other.state_dict(), model.state_dict())
        assert all(same(a.state_dict(), b.state_dict()) for a, b in zip(mine, theirs, strict=True))
    assert "first.bias" not in get_model_state_dict(model, options=StateDictOptions(ignore_frozen_params=True))
    with pytest.warns(FutureWarning, match="submodules only"):
        part = get_model_state_dict(
            model, submodules={model.last}, options=StateDictOptions(keep_submodule_prefixes=False)
        )
    assert list(part) == ["weight", "bias"]
    with pytest.raises(RuntimeError, match="model state_dict is required to save or load"):
        set_model_state_dict(model, {})
    assert set_model_state_dict(model, {}, options=StateDictOptions(strict=False)).missing_keys == []
    with pytest.raises(ValueError, match="full_state_dict must be True when broadcast_from_rank0 is True"):
        get_model_state_dict(model, options=StateDictOptions(broadcast_from_rank0=True))


def test_older_names_and_places_of_arguments(tmp_path):
    with pytest.warns(FutureWarning, match="'save_state_dict' is deprecated"):
        dcp.save_state_dict({"x": torch.ones(2)}, dcp.FileSystemWriter(tmp_path), no_dist=True)
    loaded = {"x": torch.zeros(2)}
    with pytest.warns(FutureWarning, match="'load_state_dict' is deprecated"):
        dcp.load_state_dict(loaded, dcp.FileSystemReader(tmp_path), no_dist=True)
    assert loaded["x"].tolist() == [1, 1]
    with pytest.warns(UserWarning, match="argument order of save has been changed"):
        dcp.save({"x": torch.ones(2)}, tmp_path)


def test_the_files_have_pytorchs_names(tmp_path):
    dcp.save({"x": torch.ones(2)}, checkpoint_id=tmp_path)
    with warnings.catch_warnings():
        names = {f"{module}.{name}" for module, name in _names_in((tmp_path / ".metadata").read_bytes())}
    assert not [name for name in names if name.startswith("torchlite")]
    assert "torch.distributed.checkpoint.filesystem._StorageInfo" in names
    data = (tmp_path / "__0_0.distcp").read_bytes()
    assert torch.load(io.BytesIO(data)).tolist() == [1, 1]


def _names_in(data):
    from torchlite._serialization.pickle_globals import find_globals

    return find_globals(data)


def test_parts_that_lie_over_each_other():
    """Parts of random grids do not; two that share a corner do, in any number of dimensions."""
    source = random.Random(0)
    for _ in range(100):
        cuts = [sorted({0, 20, *(source.randrange(20) for _ in range(4))}) for _ in range(source.randint(1, 3))]
        boxes = list(itertools.product(*(itertools.pairwise(places) for places in cuts)))
        source.shuffle(boxes)
        chunks = [
            ChunkStorageMetadata(torch.Size(begin for begin, _ in box), torch.Size(end - begin for begin, end in box))
            for box in boxes
        ]
        assert not _metadata_file._boxes_overlap(chunks)
        if len(chunks) > 1:
            one = chunks[0]
            corner = torch.Size(begin + size - 1 for begin, size in zip(one.offsets, one.sizes, strict=True))
            chunks.append(ChunkStorageMetadata(corner, torch.Size([1] * len(corner))))
            assert _metadata_file._boxes_overlap(chunks)


def test_checkpoints_are_no_larger_than_their_files(tmp_path):
    """A part of one element that is shown many times, parts in the same bytes, and parts beyond a file's end."""
    dcp.save({"x": torch.zeros(4), "y": torch.ones(4)}, checkpoint_id=tmp_path)
    metadata = _metadata_file.parse_metadata((tmp_path / ".metadata").read_bytes(), filesystem._OWN)
    places = [vars(place) for place in metadata.storage_data.values()]
    good = [dict(place) for place in places]

    def error(*changes):
        for place, before, change in zip(places, good, changes, strict=True):
            place.update(before | change)
        (tmp_path / ".metadata").write_bytes(_metadata_file.serialize_metadata(metadata))
        return str(failure(dcp.load, {"x": torch.zeros(4), "y": torch.zeros(4)}, checkpoint_id=tmp_path))

    one, two = good
    assert "lies in bytes of another part" in error({}, {"offset": one["offset"], "length": one["length"]})
    assert "reaches beyond its file" in error({}, {"offset": one["offset"] + one["length"] + two["length"]})
    wide = io.BytesIO()
    torch.save(torch.ones(1).expand(4), wide)
    (tmp_path / "__1_0.distcp").write_bytes(wide.getvalue())
    place = {"relative_path": "__1_0.distcp", "offset": 0, "length": len(wide.getvalue())}
    assert "elements that are not in its file" in error({}, place)


def test_parts_with_another_dtype_than_the_metadata_are_refused(tmp_path):
    """A part of complex numbers would lose its imaginary parts without a word."""
    dcp.save({"x": torch.zeros(4)}, checkpoint_id=tmp_path)
    metadata = _metadata_file.parse_metadata((tmp_path / ".metadata").read_bytes(), filesystem._OWN)
    (place,) = metadata.storage_data.values()
    part = io.BytesIO()
    torch.save(torch.ones(4, dtype=torch.complex64), part)
    (tmp_path / "__1_0.distcp").write_bytes(part.getvalue())
    vars(place).update({"relative_path": "__1_0.distcp", "offset": 0, "length": len(part.getvalue())})
    (tmp_path / ".metadata").write_bytes(_metadata_file.serialize_metadata(metadata))
    target = torch.full((4,), 7.0)
    told = str(failure(dcp.load, {"x": target}, checkpoint_id=tmp_path))
    assert "'x' of the checkpoint has a part of torch.complex64, and the metadata say torch.float32" in told
    assert target.tolist() == [7.0] * 4


def test_saving_removes_parts_alone(tmp_path):
    dcp.save({"x": torch.zeros(4)}, checkpoint_id=tmp_path)
    metadata = _metadata_file.parse_metadata((tmp_path / ".metadata").read_bytes(), filesystem._OWN)
    for place in metadata.storage_data.values():
        place.relative_path = "kept.txt"
    (tmp_path / ".metadata").write_bytes(_metadata_file.serialize_metadata(metadata))
    (tmp_path / "kept.txt").write_text("kept")
    for _ in range(2):
        dcp.save({"x": torch.zeros(4)}, checkpoint_id=tmp_path)
    assert (tmp_path / "kept.txt").read_text() == "kept"


def test_a_plan_has_the_properties_of_each_part():
    dist.init_process_group("gloo", rank=0, world_size=1)
    try:
        mesh = dist.device_mesh.init_device_mesh("cpu", (1,))
        whole = torch.ones(4, 2, dtype=torch.float64)
        parts = dist.tensor.distribute_tensor(whole, mesh, [dist.tensor.Shard(0)])
        for tensor in (whole, parts):
            (item,) = create_default_local_save_plan({"w": tensor}, True).items
            data = item.tensor_data
            assert data.properties.dtype is torch.float64 and data.size == data.chunk.sizes == torch.Size((4, 2))
    finally:
        dist.destroy_process_group()
