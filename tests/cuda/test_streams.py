"""Streams and events: what each call asks of the runtime, in which order."""

from __future__ import annotations

import threading

import pytest

import torchlite as torch

cuda = torch.cuda


def test_streams_are_the_runtimes(fake):
    default = cuda.default_stream()
    assert (
        cuda.current_stream() == default
        and default.cuda_stream == 0
        and repr(default) == "<torch.cuda.Stream device=cuda:0 cuda_stream=0x0>"
    )
    one, other = cuda.Stream(), cuda.Stream(device=0, priority=-1)
    assert (
        one != other
        and len({one, other, default}) == 3
        and one.cuda_stream != 0
        and fake.runtime(0).streams[other.cuda_stream].priority == -1
    )
    assert (one.device, one.device_index, one.device_type) == (torch.device("cuda:0"), 0, "cuda")
    assert one.native_handle == one.stream_id == one._as_parameter_.value and one.__cuda_stream__() == (
        0,
        one.cuda_stream,
    )
    assert repr(cuda.Stream(1)).startswith("<torch.cuda.Stream device=cuda:1 cuda_stream=0x")
    again = cuda.Stream(stream_id=one.stream_id, device_index=0, device_type="cuda")
    assert again == one and again._handle is one._handle
    with pytest.raises(ValueError, match="Expected a cuda device, but got: cpu"):
        cuda.Stream("cpu")


def test_work_runs_in_the_current_stream(fake):
    runtime = fake.runtime(0)
    x = torch.ones(3, device="cuda")
    one, other = cuda.Stream(), cuda.Stream()
    with cuda.stream(one):
        assert cuda.current_stream() is one
        x + 1
        with other:
            assert cuda.current_stream() is other
            x * 2
            x * 3
        assert cuda.current_stream() is one
        with cuda.stream(None):
            assert cuda.current_stream() is one
    assert cuda.current_stream() == cuda.default_stream()
    assert len(one._handle.log) == 1 and len(other._handle.log) == 2
    cuda.set_stream(one)
    seen = []
    thread = threading.Thread(target=lambda: seen.append(cuda.current_stream()))  # each thread has its own
    thread.start()
    thread.join()
    assert runtime.current_stream() is one._handle and seen == [cuda.default_stream()]
    cuda.set_stream(cuda.default_stream())
    cuda.set_stream(None)
    assert runtime.current_stream() is runtime.first


def test_a_stream_brings_its_device(fake):
    there = cuda.Stream(1)
    with cuda.stream(there):
        assert (
            cuda.current_device() == 1
            and cuda.current_stream() is there
            and cuda.current_stream(0) == cuda.default_stream(0)
        )
        torch.ones(1, device="cuda")
        assert [what for what, *_ in there._handle.log] == ["kernel"]
    assert cuda.current_device() == 0 and cuda.current_stream(1) == cuda.default_stream(1)


def test_a_stream_that_another_library_chose(fake):
    runtime = fake.runtime(0)
    foreign = runtime.new_stream(0)
    runtime.use(foreign)
    assert cuda.current_stream().cuda_stream == foreign.ptr and cuda.current_stream() == cuda.ExternalStream(
        foreign.ptr
    )
    outside = cuda.ExternalStream(0x999, device="cuda:1")
    assert outside.device_index == 1 and outside.cuda_stream == 0x999 and isinstance(outside, cuda.Stream)
    assert cuda.get_stream_from_external(0x999, 1) == outside
    runtime.use(runtime.first)


def test_waiting_is_the_streams_and_not_the_callers(fake):
    one, other = cuda.Stream(), cuda.Stream()
    with cuda.stream(one):
        torch.ones(2, device="cuda")
    assert not one.query() and other.query()
    other.wait_stream(one)
    ((kind, marker),) = other._handle.log
    assert kind == "wait" and one._handle.log[-1] == ("marker", marker) and not one.query()
    event = one.record_event()
    assert not event.query()
    event.wait(cuda.Stream(1))  # across devices too
    assert not event.query()
    other.wait_event(event)
    assert len(other._handle.log) == 2
    event.synchronize()
    assert event.query() and one.query()
    one.synchronize()
    cuda.synchronize()
    assert other.query()
    other.wait_event(cuda.Event())  # one that was not recorded: nothing to wait for
    assert len(other._handle.log) == 2


def test_events(fake):
    start, end, plain = cuda.Event(enable_timing=True), cuda.Event(enable_timing=True), cuda.Event(blocking=True)
    assert start.query() and repr(start) == "<torch.cuda.Event uninitialized>" and start.cuda_event == 0
    start.synchronize()
    with pytest.raises(ValueError, match="Both events must be recorded before calculating elapsed time"):
        start.elapsed_time(end)
    stream = cuda.Stream()
    start.record(stream)
    torch.ones(2, device="cuda")
    end.record(stream)
    plain.record()
    with pytest.raises(ValueError, match="Both events must be completed before calculating elapsed time"):
        start.elapsed_time(end)
    end.synchronize()
    assert (
        start.elapsed_time(end) == 1.0
        and start.device == torch.device("cuda:0")
        and repr(start) == f"<torch.cuda.Event {start.cuda_event:#x}>"
    )
    with pytest.raises(ValueError, match="enable_timing=True"):
        start.elapsed_time(plain)
    assert plain._marker.stream is fake.runtime(0).first and not plain._marker.timing
    with pytest.raises(RuntimeError, match="cannot be shared between processes"):
        cuda.Event(interprocess=True)


def test_generic_forms(fake):
    stream = torch.Stream("cuda:1")
    assert isinstance(stream, cuda.Stream) and isinstance(stream, torch.Stream) and stream.device_index == 1
    assert isinstance(torch.Stream(), cuda.Stream)
    event = torch.Event("cuda", enable_timing=True)
    assert isinstance(event, cuda.Event) and isinstance(event, torch.Event) and event.enable_timing
    event.record(stream)
    assert event.device == torch.device("cuda:1") and not event.query()
    assert torch.Event("cuda:1").device == torch.device("cuda:1")
    with pytest.raises(RuntimeError, match="cpu is not a type of accelerator"):
        torch.Stream("cpu")


def test_record_stream(fake):
    x, side = torch.ones(2, device="cuda"), cuda.Stream()
    x.record_stream(side)
    assert fake.runtime(0).uses == [(x._tl_array, side._handle)]
    with pytest.raises(TypeError, match="argument 's' .* must be Stream, not int"):
        x.record_stream(1)
    with pytest.raises(RuntimeError, match="the tensor is on cpu, but the stream is of cuda:0"):
        torch.ones(2).record_stream(side)
