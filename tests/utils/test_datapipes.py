"""DataPipes: each step, its errors, the rule of one valid iterator, graphs and their settings."""

from __future__ import annotations

import io
import operator
import pickle

import pytest

import torchlite as torch
from torchlite.utils.data import DataLoader, IterDataPipe, graph_settings
from torchlite.utils.data.datapipes import iter as pipes
from torchlite.utils.data.datapipes.iter import IterableWrapper, combinatorics
from torchlite.utils.data.datapipes.map import SequenceWrapper
from torchlite.utils.data.datapipes.utils.common import StreamWrapper
from torchlite.utils.data.datapipes.utils.decoder import Decoder, basichandlers, handle_extension
from torchlite.utils.data.datapipes.utils.snapshot import _simple_graph_snapshot_restoration
from torchlite.utils.data.graph import traverse_dps


def parity(x):
    return x % 2


def tenfold(x):
    return 10 * x


def length(x):
    return None if x is None else len(x)


def numbers(n=10):
    return IterableWrapper(range(n))


# -- order and several pipes ------------------------------------------------------------------------


def test_shuffling_gives_pytorchs_orders():
    torch.manual_seed(0)
    assert list(numbers().shuffle()) == [3, 5, 0, 1, 9, 6, 2, 7, 4, 8]
    assert list(numbers().shuffle(buffer_size=3)) == [0, 3, 1, 5, 6, 7, 8, 4, 2, 9]
    assert list(SequenceWrapper(list(range(10))).shuffle()) == [1, 3, 5, 2, 0, 4, 6, 8, 9, 7]
    pipe = numbers().shuffle()
    assert list(pipe.set_seed(3)) == list(pipe.set_seed(3)) != list(pipe)
    assert list(pipe.set_shuffle(False)) == list(range(10)) and len(pipe) == 10
    assert sorted(IterableWrapper([[1, 2], [3]]).shuffle(unbatch_level=1)) == [1, 2, 3]
    with pytest.raises(AssertionError, match="buffer_size should be larger than 0"):
        numbers().shuffle(buffer_size=0)


def test_sampler():
    assert list(pipes.Sampler(numbers(3))) == [0, 1, 2] and combinatorics.SamplerIterDataPipe is pipes.Sampler
    made = pipes.Sampler(numbers(3), torch.utils.data.RandomSampler, sampler_kwargs={"num_samples": 2})
    assert len(made) == 2 and set(made) <= {0, 1, 2}


def test_fork_buffers_what_one_pipe_has_not_read():
    a, b = numbers(4).fork(2)
    assert list(zip(a, b, strict=True)) == [(i, i) for i in range(4)]
    a, b = numbers(4).fork(2, buffer_size=2)
    items = iter(a)
    assert [next(items), next(items)] == [0, 1]
    with pytest.raises(BufferError, match="buffer size 2 is insufficient"):
        next(items)
    a, b = IterableWrapper([[1]]).fork(2, copy="deep")
    (first,), (second,) = list(a), list(b)
    assert first == second and first is not second
    with pytest.raises(ValueError, match="Expected `num_instances` larger than 0"):
        numbers().fork(0)
    with pytest.raises(ValueError, match="Unknown copy method `x`"):
        numbers().fork(2, copy="x")


def test_demux_and_mux():
    even, odd = numbers(6).demux(2, parity)
    assert list(even) == [0, 2, 4] and list(odd) == [1, 3, 5]
    assert list(even.mux(odd)) == [0, 1, 2, 3, 4, 5]
    with pytest.raises(BufferError, match="DemultiplexerIterDataPipe buffer overflow"):
        list(IterableWrapper([1, 3, 0]).demux(2, parity, buffer_size=1)[0])
    with pytest.raises(ValueError, match="should be between 0 and 1. 5 is returned"):
        list(IterableWrapper([5]).demux(2, abs)[0])
    assert list(IterableWrapper(["", None]).demux(1, length, drop_none=True)[0]) == [""]


def test_groups():
    assert list(numbers(6).groupby(parity)) == [[0, 2, 4], [1, 3, 5]]
    pairs = list(numbers(6).groupby(parity, keep_key=True, group_size=2))
    assert pairs == [(0, [0, 2]), (1, [1, 3]), (0, [4]), (1, [5])]
    assert list(IterableWrapper([1, 3, 2, 5]).groupby(parity, buffer_size=2)) == [[1, 3], [2], [5]]
    with pytest.raises(RuntimeError, match="Failed to group items"):
        list(numbers(6).groupby(parity, buffer_size=2, group_size=2))
    assert list(numbers(4).groupby(parity, buffer_size=2, group_size=2, drop_remaining=True)) == [[3]]
    with pytest.raises(AssertionError, match="group_size must be > 0"):
        numbers().groupby(parity, group_size=0)


def test_map_pipes():
    three, two = SequenceWrapper([1, 2, 3]), SequenceWrapper("ab")
    assert [three.concat(two)[i] for i in range(5)] == [1, 2, 3, "a", "b"]
    assert [three.zip(two)[i] for i in range(2)] == [(1, "a"), (2, "b")] and len(three.zip(two)) == 2
    assert three.batch(2)[1] == [3] and len(three.batch(2)) == 2 and len(three.batch(2, drop_last=True)) == 1
    assert three.map()[0] == 1
    with pytest.raises(IndexError, match="Index 5 is out of range"):
        three.concat(two)[5]
    with pytest.raises(IndexError, match="Index 1 is out of bound"):
        three.batch(2, drop_last=True)[1]


# -- files -------------------------------------------------------------------------------------------


def test_files_are_listed_opened_and_read(tmp_path):
    for name in ("b.txt", "a.txt", "c.json"):
        (tmp_path / name).write_text(f"[{len(name)}]")
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "d.txt").write_text("d")
    listed = pipes.FileLister(str(tmp_path), "*.txt")
    assert [path[-5:] for path in listed] == ["a.txt", "b.txt"]
    assert len(list(pipes.FileLister(str(tmp_path), recursive=True))) == 4
    assert [text for _, text in listed.open_files().read_from_stream()] == ["[5]", "[5]"]
    assert [part for _, part in listed.open_files("rb").read_from_stream(2)] == [b"[5", b"]", b"[5", b"]"]
    decoded = pipes.FileLister(str(tmp_path), "*.json").open_files("b").routed_decode(basichandlers)
    assert [value for _, value in decoded] == [[6]]
    with pytest.raises(ValueError, match="Invalid mode w"):
        listed.open_files("w")
    with pytest.raises(TypeError, match="doesn't have valid length"):
        len(listed)


def test_streams_close_with_their_last_reader():
    archive = StreamWrapper(io.StringIO("archive"))
    member = StreamWrapper(io.StringIO("member"), archive, name="m")
    archive.autoclose()
    assert not archive.closed and repr(member).startswith("StreamWrapper<m,")
    member.close()
    assert archive.closed and archive.file_obj.closed


def test_decoders():
    upper = handle_extension("seg.up", bytes.upper)
    decoder = Decoder(basichandlers, upper, key_fn=lambda path: path.partition(".")[2])
    assert decoder(("a.txt", b"x")) == {"a.txt": "x"} and decoder({"a.cls": b"3"}) == {"a.cls": 3}
    assert decoder(("a.seg.up", b"x")) == {"a.seg.up": b"X"} and decoder(("a.bin", b"x")) == {"a.bin": b"x"}
    tensor = io.BytesIO()
    torch.save(torch.ones(2), tensor)
    assert torch.equal(decoder(("a.pt", tensor.getvalue()))["a.pt"], torch.ones(2))


# -- functions and errors ------------------------------------------------------------------------------


def test_functions_are_checked():
    with pytest.raises(TypeError, match="A callable function is expected, but <class 'int'> is provided"):
        numbers().map(3)
    with pytest.raises(ValueError, match="The function parity takes 1 parameters, but 2 are required"):
        IterableWrapper([(1, 2)]).map(parity, input_col=[0, 1])
    with pytest.raises(ValueError, match="The function parity takes 1 parameters, but 2 are required"):
        IterableWrapper([(1, 2)]).filter(parity, input_col=[0, 1])
    with pytest.warns(UserWarning, match="Local function is not supported by pickle"):
        numbers().filter(lambda x: True)
    with pytest.raises(ValueError, match="Boolean output is required"):
        list(numbers().filter(parity))
    assert list(IterableWrapper([(1, 2), (3, 4)]).map(operator.add, input_col=[0, 1])) == [(3,), (7,)]
    with pytest.raises(ZeroDivisionError, match="thrown by __iter__ of MapperIterDataPipe\\(datapipe=IterableWrapper"):
        list(numbers().map((1).__truediv__))


# -- one valid iterator ----------------------------------------------------------------------------------


def test_a_second_iterator_makes_the_first_invalid():
    pipe = numbers()
    first = iter(pipe)
    assert next(first) == 0
    second = iter(pipe)
    assert next(second) == 0
    with pytest.raises(RuntimeError, match="This iterator has been invalidated"):
        next(first)
    assert pipe._number_of_samples_yielded == 1 and next(second) == 1


class Countdown(IterDataPipe):
    def __init__(self):
        self.reset()

    def reset(self):
        self.left = iter(range(3))

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.left)


def test_a_pipe_that_is_its_own_iterator():
    pipe = Countdown()
    assert list(pipe) == list(pipe) == [0, 1, 2] and pipe._number_of_samples_yielded == 3


def test_children_begin_anew_together():
    a, b = numbers(3).fork(2)
    one, two = iter(a), iter(b)
    assert (next(one), next(two)) == (0, 0)
    with pytest.warns(UserWarning, match="Some child DataPipes are not exhausted"):
        again = iter(a)
    with pytest.raises(RuntimeError, match="invalidated"):
        next(two)
    assert list(again) == [0, 1, 2] == list(b)


# -- graphs -----------------------------------------------------------------------------------------------


def test_graph():
    source = numbers()
    a, b = source.fork(2)
    pipe = a.map(tenfold).zip(b)
    graph = traverse_dps(pipe)
    (found, inner), *rest = graph.values()
    assert found is pipe and not rest and len(inner) == 2
    everything = graph_settings.get_all_graph_pipes(graph)
    assert source in everything and len(everything) == len(set(map(id, everything))) == 6


def test_sharding():
    parts = []
    for i in range(3):
        pipe = numbers().shuffle().set_shuffle(False).sharding_filter().map(tenfold)
        graph_settings.apply_sharding(pipe, 3, i)
        parts.append(list(pipe))
        assert len(pipe) == len(parts[-1])
    assert sorted(x for part in parts for x in part) == list(range(0, 100, 10)) and parts[1] == [10, 40, 70]
    with pytest.raises(RuntimeError, match="Sharding twice on a single pipeline"):
        graph_settings.apply_sharding(numbers().sharding_filter().sharding_filter(), 2, 0)
    with pytest.raises(ValueError, match="should be smaller than"):
        numbers().sharding_filter().apply_sharding(2, 2)


def test_position_is_restored():
    pipe = numbers().map(tenfold)
    _simple_graph_snapshot_restoration(pipe, 7)
    assert list(pipe) == [70, 80, 90] and list(pipe) == list(range(0, 100, 10))


def test_pickled_pipes():
    pipe = numbers().map(tenfold).shuffle().set_shuffle(False).batch(4).groupby(len)
    copy = pickle.loads(pickle.dumps(pipe))
    assert list(copy) == list(pipe) and repr(copy) == "GrouperIterDataPipe"
    a, _ = numbers(2).fork(2)
    assert list(pickle.loads(pickle.dumps(a))) == [0, 1]


def test_loader_shuffles_and_shares_a_pipe():
    plain = DataLoader(numbers(6), batch_size=2, shuffle=False)
    assert [batch.tolist() for batch in plain] == [[0, 1], [2, 3], [4, 5]]
    with pytest.warns(UserWarning, match="does not contain a `Shuffler`"):
        loader = DataLoader(numbers(6), batch_size=None, shuffle=True)
    assert sorted(loader) == list(range(6))
    shared = DataLoader(numbers(6).shuffle().sharding_filter(), batch_size=None, num_workers=2, shuffle=True)
    assert sorted(int(x) for x in shared) == list(range(6))
