"""Sobol' points: PyTorch's, bit for bit. Digests and values are those of PyTorch 2.13."""

import copy
import hashlib
import pickle

import numpy as np
import pytest

import torchlite as torch
from torchlite.quasirandom import SobolEngine
from torchlite.quasirandom.sobol_numbers import direction_numbers


def digest(*arrays):
    return hashlib.sha256(b"".join(np.asarray(array).tobytes() for array in arrays)).hexdigest()


def test_direction_numbers_of_all_dimensions():
    assert digest(direction_numbers(21201)) == "4a6c1b3e473e79ebf849fc9a695e6cbc566dff5cc899272a4dfc9b5038c3beca"
    assert digest(direction_numbers(40)) == "0ee5d7f9de0bc469f0930f141dc63703a94405bc8587cd89284047cedd672862"
    assert direction_numbers(1).tolist() == [[2**bit for bit in range(29, -1, -1)]]


@pytest.mark.parametrize(
    "scramble, wanted",
    [
        (False, "934621b9c81088807f02464f5ad6eb704d1fc3bec9778771aca4f9dd14c327c1"),
        (True, "0bc6036abfdc7c2603d67c0215ba3433ad11822d647caec0783dbe05bc2237d1"),
    ],
)
def test_points_drawn_in_pieces(scramble, wanted):
    engine = SobolEngine(50, scramble, seed=7)
    pieces = [engine.draw(n, dtype=torch.float64) for n in (3, 100, 1000, 1)]
    assert digest(*pieces) == wanted and engine.num_generated == 1104
    again = engine.reset().draw(1104, dtype=torch.float64)
    assert digest(again) == wanted
    one_by_one = SobolEngine(50, scramble, seed=7)
    assert all(torch.equal(one_by_one.draw(dtype=torch.float64)[0], point) for point in again[:20])


def test_fast_forward():
    engine = SobolEngine(300, scramble=True, seed=7)
    assert engine.fast_forward(12345) is engine
    pieces = [engine.draw(n, dtype=torch.float64) for n in (3, 100)]
    assert digest(*pieces) == "516f49803a71a535adec949d441bb05ad6b05bd43883232e0c810819f895af16"
    for ahead in ((4,), (1, 3), (0, 2, 0, 2)):
        engine = SobolEngine(2)
        for n in ahead:
            engine.fast_forward(n)
        assert engine.draw(2).tolist() == [[0.375, 0.375], [0.875, 0.875]]


def test_first_points_and_their_dtype():
    engine = SobolEngine(3, True, 5)
    assert [round(value, 4) for value in engine.draw()[0].tolist()] == [0.4803, 0.1173, 0.1240]
    assert engine.shift.tolist() == [515708045, 125905764, 133132919]
    assert engine.sobolstate[:, 0].tolist() == [619217127, 806952851, 628044183]
    assert SobolEngine(2).draw().dtype is torch.float32
    assert SobolEngine(2).draw(3, dtype=torch.float64).dtype is torch.float64
    with pytest.raises(NotImplementedError, match="\"_sobol_engine_draw\" not implemented for 'Half'"):
        SobolEngine(2).draw(3, dtype=torch.float16)


def test_out_is_resized_and_keeps_its_dtype():
    out = torch.empty(0, dtype=torch.float64)
    assert SobolEngine(2).draw(3, out=out) is out
    assert out.dtype is torch.float64 and out.tolist() == [[0, 0], [0.5, 0.5], [0.75, 0.25]]
    engine = SobolEngine(2)
    assert engine.draw(2).shape == (2, 2) and engine.draw(0).shape == (0, 2)


def test_powers_of_two():
    engine = SobolEngine(2)
    assert engine.draw_base2(2).tolist() == [[0, 0], [0.5, 0.5], [0.75, 0.25], [0.25, 0.75]]
    with pytest.raises(ValueError, match="4 points have been previously generated, then: n=4\\+2\\*\\*3=12"):
        engine.draw_base2(3)
    assert engine.draw_base2(2)[0].tolist() == [0.375, 0.375]


def test_wrong_dimensions_and_counts_raise():
    for dimension in (0, 21202):
        with pytest.raises(ValueError, match="Supported range of dimensionality for SobolEngine is \\[1, 21201\\]"):
            SobolEngine(dimension)
    with pytest.raises(RuntimeError, match="Trying to create tensor with negative dimension -4: \\[-4, 2\\]"):
        SobolEngine(2).draw(-3)
    with pytest.raises(RuntimeError, match="the sequence has 2\\*\\*30 points"):
        SobolEngine(2).fast_forward(2**30).draw()


def test_an_engine_is_copied_and_shown():
    engine = SobolEngine(2, scramble=True, seed=5)
    assert repr(engine) == "SobolEngine(dimension=2, scramble=True, seed=5)"
    assert repr(SobolEngine(2)) == "SobolEngine(dimension=2)"
    engine.draw(5)
    twins = [copy.deepcopy(engine), pickle.loads(pickle.dumps(engine))]
    point = engine.draw()
    assert all(torch.equal(twin.draw(), point) for twin in twins)


def test_the_global_stream_and_default_device_are_left_alone():
    torch.manual_seed(1)
    wanted = torch.rand(3)
    torch.manual_seed(1)
    with torch.device("meta"):
        assert SobolEngine(2, scramble=True, seed=3).draw(3).device.type == "cpu"
    assert torch.equal(torch.rand(3), wanted)


@pytest.mark.parametrize("scramble", [False, True])
def test_points_under_a_float64_default(scramble):
    plain = SobolEngine(3, scramble, seed=1).draw(9)
    torch.set_default_dtype(torch.float64)
    try:
        points = SobolEngine(3, scramble, seed=1).draw(9)
    finally:
        torch.set_default_dtype(torch.float32)
    assert points.dtype is torch.float64
    torch.testing.assert_close(points.float(), plain)
