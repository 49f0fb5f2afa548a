"""The scheduler: batches, the bounded queue, deadlines and cancelled requests."""

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from torchlite.serve._batching import BatchLimits, Scheduler
from torchlite.serve._errors import Busy, DeadlineExceeded, Unavailable
from torchlite.serve._statistics import StageTimes


class Model:
    """Adds one; keeps its batches, and waits for `gate` in each."""

    def __init__(self):
        self.batches = []
        self.gate = threading.Event()
        self.gate.set()

    def run(self, payloads):
        self.batches.append(list(payloads))
        assert self.gate.wait(10)
        if "bad" in payloads:
            raise ValueError("a bad one")
        return [payload + 1 for payload in payloads], StageTimes(compute_infer=0.5)


class Observed:
    def __init__(self):
        self.rows = []

    def on_batch(self, rows, waited, times):
        self.rows.append((rows, len(waited), times.total))


@pytest.fixture
def model():
    return Model()


def scheduled(model, work, **limits):
    """Run `work(scheduler)` in an event loop."""

    async def main():
        with ThreadPoolExecutor(2) as pool:
            return await work(Scheduler(model.run, pool, BatchLimits(**limits), Observed()))

    return asyncio.run(main())


def test_requests_that_wait_are_joined_by_signature(model):
    async def work(scheduler):
        model.gate.clear()
        futures = [scheduler.submit(0, "a")]
        futures += [scheduler.submit(n, "b" if n == 3 else "a") for n in range(1, 7)]
        model.gate.set()
        return await asyncio.gather(*futures)

    assert scheduled(model, work, max_batch=4) == [1, 2, 3, 4, 5, 6, 7]
    assert model.batches == [[0], [1, 2, 4, 5], [3], [6]]


def test_rows_limit_a_batch(model):
    async def work(scheduler):
        model.gate.clear()
        futures = [scheduler.submit(n, "a", rows) for n, rows in enumerate((1, 3, 2, 1, 9))]
        model.gate.set()
        return await asyncio.gather(*futures)

    scheduled(model, work, max_batch=4)
    assert model.batches == [[0], [1, 3], [2], [4]]


def test_a_delay_joins_later_requests(model):
    async def work(scheduler):
        first = scheduler.submit(0, "a")
        await asyncio.sleep(0.01)
        return await asyncio.gather(first, scheduler.submit(1, "a"))

    assert scheduled(model, work, max_batch=2, delay=5.0) == [1, 2]
    assert model.batches == [[0, 1]]


def test_the_delay_ends(model):
    async def work(scheduler):
        return await scheduler.submit(0, "a")

    start = time.perf_counter()
    assert scheduled(model, work, max_batch=2, delay=0.05) == 1
    assert 0.05 <= time.perf_counter() - start < 5


def test_one_failure_does_not_fail_the_others(model):
    async def work(scheduler):
        model.gate.clear()
        futures = [scheduler.submit(n, "a") for n in (0, 1, "bad", 2)]
        model.gate.set()
        return await asyncio.gather(*futures, return_exceptions=True)

    found = scheduled(model, work, max_batch=8)
    assert found[:2] == [1, 2] and found[3] == 3 and str(found[2]) == "a bad one"


def test_the_queue_is_bounded(model):
    async def work(scheduler):
        model.gate.clear()
        futures = [scheduler.submit(n) for n in range(3)]
        with pytest.raises(Busy) as error:
            scheduler.submit(3)
        assert error.value.retry_after >= 1
        model.gate.set()
        return await asyncio.gather(*futures)

    assert scheduled(model, work, max_queue=2) == [1, 2, 3]


def test_a_cancelled_request_gives_its_place_free(model):
    async def work(scheduler):
        model.gate.clear()
        running, waiting = scheduler.submit(0), scheduler.submit(1)
        waiting.cancel()
        await asyncio.sleep(0)
        assert scheduler.queue_length == 0
        model.gate.set()
        return await running

    assert scheduled(model, work, max_queue=1) == 1
    assert model.batches == [[0]]


def test_a_deadline_ends_a_request_in_the_queue(model):
    async def work(scheduler):
        model.gate.clear()
        running, waiting = scheduler.submit(0), scheduler.submit(1)
        with pytest.raises(DeadlineExceeded):
            await scheduler.wait(waiting, time.perf_counter() + 0.01)
        await asyncio.sleep(0)
        assert scheduler.queue_length == 0
        model.gate.set()
        return await scheduler.wait(running, None)

    assert scheduled(model, work) == 1


def test_closing_answers_what_waits_and_refuses_the_rest(model):
    async def work(scheduler):
        model.gate.clear()
        futures = [scheduler.submit(n, "a") for n in range(3)]
        closing = asyncio.ensure_future(scheduler.close())
        await asyncio.sleep(0)
        with pytest.raises(Unavailable):
            scheduler.submit(9)
        assert not closing.done()
        model.gate.set()
        await closing
        assert all(future.done() for future in futures)
        return [future.result() for future in futures]

    assert scheduled(model, work, max_batch=2, delay=60.0) == [1, 2, 3]


def test_workers_call_at_the_same_time(model):
    async def work(scheduler):
        model.gate.clear()
        futures = [scheduler.submit(n) for n in range(2)]
        while len(model.batches) < 2:
            await asyncio.sleep(0.001)
        assert scheduler.in_flight == 2
        model.gate.set()
        return await asyncio.gather(*futures)

    assert scheduled(model, work, workers=2) == [1, 2]


# -- calls in the event loop's thread ------------------------------------------------------


class Quick(Model):
    """Notes in which thread each batch is computed. A payload of "long" takes four milliseconds."""

    def __init__(self):
        super().__init__()
        self.threads = []

    def run(self, payloads):
        self.threads.append(threading.current_thread())
        start = time.thread_time()
        while "long" in payloads and time.thread_time() - start < 0.004:
            pass
        return super().run([0 if payload == "long" else payload for payload in payloads])

    def stayed(self):
        """Whether each call was in the event loop's thread."""
        return [thread is threading.main_thread() for thread in self.threads]


def stayed(model, work, **limits):
    """As `scheduled`, with a model whose brief calls need no thread. One call has been."""

    async def main():
        with ThreadPoolExecutor(1) as pool:
            scheduler = Scheduler(model.run, pool, BatchLimits(**limits), Observed(), stays=True)
            await scheduler.submit(0, "a", size=100)
            return await work(scheduler)

    return asyncio.run(main())


@pytest.fixture
def quick():
    return Quick()


def test_brief_calls_need_no_thread(quick):
    async def work(scheduler):
        return [await scheduler.submit(n, "a", size=100) for n in range(3)]

    assert stayed(quick, work) == [1, 2, 3]
    assert quick.stayed() == [False, True, True, True]  # nothing is known of the first one


def test_requests_that_have_come_join_a_brief_call(quick):
    async def work(scheduler):
        return await asyncio.gather(*(scheduler.submit(n, "a", size=100) for n in range(3)))

    assert stayed(quick, work, max_batch=3) == [1, 2, 3]
    assert quick.batches == [[0], [0, 1, 2]]


def test_a_long_call_takes_a_thread(quick):
    async def work(scheduler):
        for _ in range(12):
            await scheduler.submit("long", "a", size=100)

    stayed(quick, work)
    assert quick.stayed()[-2:] == [False, False]


@pytest.mark.parametrize("size", [0, 1 << 40])
def test_large_inputs_and_other_requests_take_a_thread(quick, size):
    async def work(scheduler):
        return await scheduler.submit(1, "a", size=size)

    assert stayed(quick, work) == 2
    assert quick.stayed() == [False, False]


def test_several_calls_at_a_time_take_threads(quick):
    async def work(scheduler):
        return await scheduler.submit(1, "a", size=100)

    assert stayed(quick, work, workers=2) == 2
    assert quick.stayed() == [False, False]


def test_one_failure_does_not_fail_the_others_of_a_brief_call(quick):
    async def work(scheduler):
        futures = [scheduler.submit(n, "a", size=100) for n in (0, "bad", 2)]
        return await asyncio.gather(*futures, return_exceptions=True)

    found = stayed(quick, work, max_batch=3)
    assert found[0] == 1 and str(found[1]) == "a bad one" and found[2] == 3


def test_a_brief_call_leaves_out_who_has_gone(quick):
    async def work(scheduler):
        futures = [scheduler.submit(n, "a", size=100) for n in range(4)]
        futures[0].cancel()
        futures[2].cancel()
        await scheduler.wait(futures[1], None)
        return await futures[3]

    assert stayed(quick, work) == 4
    assert quick.batches == [[0], [1], [3]]


def test_closing_answers_what_waits_for_a_brief_call(quick):
    async def work(scheduler):
        future = scheduler.submit(1, "a", size=100)
        await scheduler.close()
        assert scheduler.queue_length == 0
        return future.result()

    assert stayed(quick, work) == 2
