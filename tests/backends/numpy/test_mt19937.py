"""PyTorch's stream of words: positions after words that are given back."""

import gc
import sys

import numpy as np
import pytest

from torchlite_backends.numpy import mt19937
from torchlite_backends.numpy.mt19937 import WORDS, Engine, invert_tempering


@pytest.mark.parametrize("begin", [0, 1, 600, WORDS - 1, WORDS, WORDS + 1, 2 * WORDS])
@pytest.mark.parametrize("count", [3, WORDS, 700, 2 * WORDS, 9000, 30_000])
def test_words_given_back_are_read_again(begin, count):
    edges = (23, 24, 25, WORDS - 1, WORDS, WORDS + 1, 2 * WORDS - 1, 2 * WORDS, 2 * WORDS + 1, count - WORDS - 1)
    for used in {0, 1, count // 3, count - 1, count, *(k for k in edges if 0 <= k <= count)}:
        engine, other = Engine(7), Engine(7)
        engine.words(begin), other.words(begin)
        mark = engine.stream_position()
        words = engine.words(count)
        engine.give_back(words, used, mark)
        assert np.array_equal(words[:used], other.words(used))
        assert np.array_equal(engine.get_state(), other.get_state())
        assert np.array_equal(engine.words(1500), other.words(1500))


def test_tempering_is_inverted():
    engine = Engine(3)
    words = engine.words(WORDS)
    key = engine.get_state()[24 : 24 + 8 * WORDS].view(np.uint64)
    assert np.array_equal(invert_tempering(words.copy()), key)


def test_a_twister_that_serves_again_begins_anew():
    mt19937._spare_twisters.clear()
    engine = Engine(5)
    twister, first = engine._twister, engine.words(1000).copy()
    engine.words(77)
    del engine
    gc.collect()
    assert [spare for spare, _ in mt19937._spare_twisters] == [twister]
    engine = Engine(5)
    assert engine._twister is twister and not mt19937._spare_twisters
    assert np.array_equal(engine.words(1000), first)
    others = [Engine(k) for k in range(2 * mt19937._SPARE)]
    del others
    gc.collect()
    assert len(mt19937._spare_twisters) == mt19937._SPARE


def test_an_engine_goes_after_the_names_of_its_module(monkeypatch):
    """At the end of the interpreter a module's names become None before objects that others hold go."""
    engine, raised = Engine(), []
    monkeypatch.setattr(sys, "unraisablehook", raised.append)
    for name in list(vars(mt19937)):
        monkeypatch.setitem(vars(mt19937), name, None)
    del engine
    gc.collect()
    assert not raised
