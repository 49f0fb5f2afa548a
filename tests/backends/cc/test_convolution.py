"""Convolutions by a compiled program, against NumPy's in float64."""

import numpy as np
import pytest

from torchlite._settings import thread_count
from torchlite._settings.backend_flags import FLAGS
from torchlite_backends.cc import convolution, cxx_compiler
from torchlite_backends.numpy import conv, conv_cpu_engine, conv_geometry

pytestmark = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())


@pytest.fixture(scope="module")
def program():
    found = convolution.load_convolutions(True)
    assert found is not None
    return found


@pytest.fixture(autouse=True)
def two_threads(monkeypatch):
    monkeypatch.setattr(thread_count, "_count", 2)
    monkeypatch.setattr(FLAGS, "mkldnn_enabled", False)
    # All shapes, however little of what is computed is used, and on two threads however small.
    for name in ("_MIN_USEFUL_SHARE", "_MIN_MULS", "_MIN_MULS_PER_THREAD", "_MIN_MOVES_PER_THREAD"):
        monkeypatch.setattr(convolution, name, 0)
    convolution._is_faster.cache_clear()
    yield
    convolution._is_faster.cache_clear()


def plan_of(batch, channels, filters, size, kernel, stride=1, padding=0, dilation=1, groups=1):
    n = len(size)
    pairs = [(v,) * n if isinstance(v, int) else v for v in (kernel, stride, padding, dilation)]
    return conv_geometry.get_conv_geometry(batch, channels, filters, size, *pairs, groups)


PLANS = [
    plan_of(2, 3, 5, (9, 7), 3, padding=1),
    plan_of(2, 8, 6, (12, 13), 3, 2, 1, groups=2),
    plan_of(3, 16, 20, (7, 7), 1),  # images of a batch side by side
    plan_of(3, 16, 20, (8, 8), 1, 2),  # places that nothing reads
    plan_of(2, 40, 33, (20,), 2, dilation=4),
    plan_of(1, 6, 4, (50,), 5, 3, 2),
    plan_of(2, 4, 4, (30, 31), (5, 3), (3, 2), (2, 0), (1, 2)),
    plan_of(2, 20, 70, (16, 16), 3, padding=1),
    plan_of(2, 3, 17, (40, 40), 7, 2, 3),
    plan_of(2, 300, 9, (11, 10), 3, padding=1),  # sums in pieces
    plan_of(2, 8, 8, (10, 10), 2, 2),
    plan_of(1, 8, 8, (10, 10), 3, padding=4),  # more outputs than inputs
    plan_of(1, 8, 8, (10, 10), 3, 4),  # lines and columns that nothing reads
    plan_of(2, 32, 8, (20, 19), 1),
    plan_of(1, 130, 70, (12, 13), 1, groups=2),
    plan_of(1, 5, 1, (5, 5), 1),
    plan_of(40, 6, 6, (3, 3), 3, padding=1),  # many images in a piece of the weight's gradient
    plan_of(2, 24, 24, (17, 15), 3, padding=1, groups=24),
    plan_of(2, 24, 24, (17, 15), 3, 2, 1, groups=24),
    plan_of(2, 6, 6, (17, 15), 5, (2, 1), 2, (2, 1), groups=6),
    plan_of(3, 5, 5, (70,), 2, 2, groups=5),
    plan_of(2, 4, 8, (9, 9), 3, padding=1, groups=4),
    # Weights' gradients summed along images: places that are no whole vectors, blocks that are not full.
    plan_of(2, 7, 25, (301,), 2, dilation=3),
    plan_of(1, 3, 5, (1200,), 3, padding=1),
    plan_of(3, 21, 24, (17, 19), 1),
    # Images of whole vectors whose outputs are less than one.
    plan_of(2, 48, 8, (32,), 3),
    plan_of(2, 40, 33, (6, 6), 3),
    plan_of(1, 16, 20, (34,), 5),
    # The gradient's rows that are read are as many numbers as the gradient, in other lines.
    plan_of(2, 64, 4, (5, 16), (1, 3), (1, 3), (1, 3), (1, 2), 4),
]


def passes(program, plan, seed=0):
    rng = np.random.default_rng(seed)

    def random(*shape):
        return rng.standard_normal(shape, np.float32)

    x, weight = (
        random(plan.batch, plan.channels, *plan.size),
        random(plan.filters, plan.channels // plan.groups, *plan.kernel),
    )
    g, bias, back = random(plan.batch, plan.filters, *plan.out), random(plan.filters), random(plan.channels)
    found = (
        program.forward(plan, x, weight, bias),
        program.forward(plan, x, weight, None),
        program.conv_transpose(plan, g, weight, back),
        program.conv_transpose(plan, g, weight, None),
        program.weight_gradient(plan, g, x),
    )
    return found, [a.astype(np.float64) for a in (x, weight, g, bias, back)]


@pytest.mark.parametrize("plan", PLANS, ids=lambda p: f"{p.channels}-{p.filters}-{p.size}-{p.kernel}-{p.stride}")
def test_passes(program, plan):
    found, (x, weight, g, bias, back) = passes(program, plan)
    wanted = (
        conv._conv_forward(x, weight, bias, plan),
        conv._conv_forward(x, weight, None, plan),
        conv._conv_transpose(g, weight, back, plan),
        conv._conv_transpose(g, weight, None, plan),
        conv._weight_gradient(g, x, weight.shape, plan),
    )
    for mine, want in zip(found, wanted, strict=True):
        assert mine.shape == want.shape and mine.dtype == np.float32 and mine.flags.c_contiguous
        assert np.abs(mine - want).max() <= 2e-6 * max(np.abs(want).max(), 1)


@pytest.mark.parametrize("shape", [(3, 5, 7, 11), (2, 40, 1000), (1, 2, 16, 600), (700, 3, 8)])
def test_bias_gradient(program, shape, monkeypatch):
    g = np.random.default_rng(1).standard_normal(shape, np.float32)
    monkeypatch.setattr(convolution, "_MIN_MULS", 1)
    found = program.bias_gradient(g)
    np.testing.assert_allclose(found, g.sum((0, *range(2, g.ndim)), np.float64), rtol=1e-5, atol=1e-4)
    assert program.bias_gradient(g.astype(np.float64)) is None and program.bias_gradient(g[:, :, ::2]) is None


@pytest.mark.parametrize("plan", PLANS[::2], ids=lambda p: f"{p.channels}-{p.filters}-{p.size}-{p.kernel}")
def test_threads_change_no_bit(program, plan, monkeypatch):
    two, _ = passes(program, plan)
    monkeypatch.setattr(thread_count, "_count", 1)
    one, _ = passes(program, plan)
    monkeypatch.setattr(thread_count, "_count", 3)
    monkeypatch.setattr(program, "_sharing", None)  # Python's threads
    three, _ = passes(program, plan)
    for a, b, c in zip(one, two, three, strict=True):
        assert a.tobytes() == b.tobytes() == c.tobytes()


@pytest.mark.parametrize("plan", PLANS[:6], ids=lambda p: f"{p.channels}-{p.filters}-{p.size}")
def test_weights_swapped(program, plan, monkeypatch):
    monkeypatch.setattr(convolution, "_MIN_WEIGHTS_TO_GATHER", 0)
    test_passes(program, plan)


FILTERED = [
    plan_of(2, 5, 9, (8, 8), 3, padding=1),
    plan_of(3, 40, 17, (13, 7), 3, padding=1),  # tiles that reach over the end
    plan_of(1, 8, 3, (60, 61), 3),
    plan_of(9, 3, 33, (4, 4), 3, padding=1),  # a panel of several images
    plan_of(1, 2, 2, (1, 3), 3, padding=(1, 2)),
    plan_of(1, 300, 4, (5, 90), 3, padding=2),
]


@pytest.fixture
def filtering(monkeypatch):
    monkeypatch.setattr(convolution, "_WINOGRAD_MIN_CHANNELS", 1)
    monkeypatch.setattr(convolution, "_WINOGRAD_MIN_TILES", 1)


@pytest.mark.usefixtures("filtering")
@pytest.mark.parametrize("plan", FILTERED, ids=lambda p: f"{p.channels}-{p.filters}-{p.size}")
def test_winograd(program, plan, monkeypatch):
    asked, launch = [], type(program)._launch
    monkeypatch.setattr(type(program), "_launch", lambda *args: asked.append(args[1]) or launch(*args))
    test_passes(program, plan)
    assert asked.count("filtering_tiles") == 4 and "sum_places" not in asked
    test_threads_change_no_bit(program, plan, monkeypatch)


@pytest.mark.usefixtures("filtering")
def test_nonfinite_inputs_with_winograd(program):
    test_nonfinite_inputs_reach_only_their_windows(program)


def test_nonfinite_inputs_reach_only_their_windows(program):
    plan = plan_of(1, 4, 8, (20, 20), 3, padding=1)
    x, weight = np.zeros((1, 4, 20, 20), np.float32), np.ones((8, 4, 3, 3), np.float32)
    x[0, 1, 19, 19], x[0, 2, 0, 0] = np.nan, np.inf
    out = program.forward(plan, x, weight, None)[0, 0]
    assert np.isnan(out[18:, 18:]).all() and np.isinf(out[:2, :2]).all()
    out[18:, 18:] = out[:2, :2] = 0
    assert not out.any()


def test_views_are_read_as_they_are(program):
    plan = plan_of(2, 6, 5, (9, 8), 3)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 9, 8, 6), np.float32).transpose(0, 3, 1, 2)
    weight = rng.standard_normal((3, 3, 6, 5), np.float32).T
    want = conv._conv_forward(x.astype("f8"), weight.astype("f8"), None, plan)
    np.testing.assert_allclose(program.forward(plan, x, weight, None), want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("plan", [PLANS[2], PLANS[7], PLANS[8], PLANS[17]])
def test_biases_with_strides(program, plan):
    rng = np.random.default_rng(4)
    x, g = (
        rng.random((plan.batch, *s), dtype=np.float32) for s in ((plan.channels, *plan.size), (plan.filters, *plan.out))
    )
    weight = rng.random((plan.filters, plan.channels // plan.groups, *plan.kernel), dtype=np.float32)
    for run, images, count in ((program.forward, x, plan.filters), (program.conv_transpose, g, plan.channels)):
        bias = rng.random((count, 3), dtype=np.float32)[::-1, 1]
        np.testing.assert_array_equal(run(plan, images, weight, bias), run(plan, images, weight, bias.copy()))


def test_others_are_left_to_numpy(program):
    volume = plan_of(1, 2, 2, (5, 5, 5), 3)
    assert program.forward(volume, np.ones((1, 2, 5, 5, 5), "f4"), np.ones((2, 2, 3, 3, 3), "f4"), None) is None
    plain = plan_of(1, 2, 2, (5, 5), 3)
    assert program.forward(plain, np.ones((1, 2, 5, 5)), np.ones((2, 2, 3, 3)), None) is None
    empty = plan_of(0, 2, 2, (5, 5), 3)
    assert program.forward(empty, np.ones((0, 2, 5, 5), "f4"), np.ones((2, 2, 3, 3), "f4"), None) is None


def test_backend_asks_the_engine(program, monkeypatch):
    asked = []

    class Noted:
        def forward(self, *args):
            asked.append("forward")
            return program.forward(*args)

        def conv_transpose(self, *args):
            asked.append("conv_transpose")
            return program.conv_transpose(*args)

        def weight_gradient(self, *args):
            asked.append("weight")
            return program.weight_gradient(*args)

        def bias_gradient(self, *args):
            asked.append("bias")
            return program.bias_gradient(*args)

    monkeypatch.setattr(conv_cpu_engine, "_engine_convolutions", Noted)
    x, weight = np.ones((2, 3, 8, 8), np.float32), np.ones((4, 3, 3, 3), np.float32)
    geometry = (1, 1), (1, 1), (1, 1), False, (0, 0), 1
    out = conv.convolution(x, weight, None, *geometry)
    conv._convolution_backward(out, x, weight, *geometry, (True, True, True))
    assert asked == ["forward", "conv_transpose", "weight", "bias"]


def test_nothing_is_built_unasked(monkeypatch):
    monkeypatch.setattr(convolution, "SOURCE", "// not built")
    assert convolution.load_convolutions(False) is None


def test_forward_pass_makes_no_layout_of_gradients():
    """It has a step for each kernel position and each of the strides' phases: seconds for long strided kernels."""
    plan = conv_geometry.get_conv_geometry(1, 1, 2, (44100,), (8192,), (441,), (0,), (1,), 1)
    layouts = convolution.conv_layouts(plan)
    assert "images_gradient" not in vars(layouts) and len(layouts.image_places) == 8192
    taps = [t for phase in layouts.images_gradient.phases for t in phase.weight_places]
    assert sorted(taps) == list(range(8192))
