"""Kernels compiled by the machine's C++ compiler: their text, their numbers, their place on the disk."""

import os
import platform
import subprocess
import sys
import threading

import ml_dtypes
import numpy as np
import pytest

import torchlite as torch
from torchlite_backends.cc import cxx_compiler, native_chain, program_build
from torchlite_backends.cc.device import Device
from torchlite_backends.device_runtime.backend import kernels_of
from torchlite_backends.device_runtime.core.device import NotBuiltError
from torchlite_backends.kernel_sources.opencl_to_cpp import list_kernel_names, translate_vectors

compiled = pytest.mark.skipif(bool(cxx_compiler.why_not()), reason=cxx_compiler.why_not())


# -- texts --


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("x = a ? b : c;", "x = choose_of((a ), LATER { return  b ; }, LATER { return  c; });"),
        ("f(a > 0 ? 1 : 2, y);", "f(choose_of((a > 0 ), LATER { return  1 ; }, LATER { return  2; }), y);"),
        (
            "x = a ? b : c ? d : e;",
            "x = choose_of((a ), LATER { return  b ; }, "
            "LATER { return  choose_of((c ), LATER { return  d ; }, LATER { return  e; }); });",
        ),
        (
            "x = a > 0 ? a : exp(a);",
            "x = choose_first_of((a > 0 ), LATER { return  a ; }, LATER { return  exp(a); });",
        ),
        (
            "x = a > 0 ? log(a) : exp(a);",
            "x = choose_of((a > 0 ), LATER { return  log(a) ; }, LATER { return  exp(a); });",
        ),
        (
            "#define M(a) a ? 1 : 2\nint x;",
            "#define M(a) choose_of((a ), LATER { return  1 ; }, LATER { return  2; })\nint x;",
        ),
        ("#if A ? 1 : 0\nint x;\n#endif", "#if A ? 1 : 0\nint x;\n#endif"),
        ("v = (float16)(0) + w.lo * w.hi;", "v = float16(0) + w.lower() * w.upper();"),
        ("t[2 * i].even = a.lo;", "t[2 * i].set_every_other<0>(a.lower());"),
        ("re = v.even; im = v.odd;", "re = v.every_other<0>(); im = v.every_other<1>();"),
        ("s.v = (float16)(one, a.s0, a.s12, a.s3456, a.s789abcde);", "s.v = a.moved<1>(one);"),
        ("p = q + i * g.s0;", "p = q + i * g.s0;"),
    ],
)  # fmt: skip
def test_translated(text, expected):
    assert translate_vectors(text) == expected


def test_kernel_names():
    text = "KERNEL void one(int a) {}\nKERNEL MATRICES void two(int b) {}\nKERNEL GROUP_SIZE(4) void three() {}"
    assert list_kernel_names(text) == ["one", "two", "three"]


@compiled
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the processor is another one")
def test_vectors_are_not_copied_in_halves():
    """Intel's processors wait long when a vector is loaded whole whose halves were just stored."""
    words = [word.replace("=native", "=skylake-avx512") for word in cxx_compiler.flags()]
    command = [*cxx_compiler.compiler(), *words, "-S", "-o", "-", "-"]
    made = subprocess.run(command, input=native_chain.SOURCE, text=True, check=True, capture_output=True).stdout
    whole, halves = (
        sum(f"%{name}mm" in line and "(" in line and "mov" in line for line in made.splitlines()) for name in "zy"
    )
    assert whole > 4 * halves, (whole, halves)


# -- numbers --


@pytest.fixture(scope="module")
def engine():
    return Device()


@pytest.fixture(scope="module")
def kernels(engine):
    return kernels_of(engine)


SPECIAL = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    np.inf,
    -np.inf,
    np.nan,
    1e-40,
    -1e-40,
    3e38,
    -3e38,
    1e-7,
    88.5,
    89.5,
    -103.0,
]
UNARY = {
    "exp": (np.exp, 2), "exp2": (np.exp2, 2), "expm1": (np.expm1, 4), "log": (np.log, 4), "log1p": (np.log1p, 4),
    "tanh": (np.tanh, 4), "sin": (np.sin, 4), "sqrt": (np.sqrt, 0), "floor": (np.floor, 0), "trunc": (np.trunc, 0),
    "round": (np.rint, 0), "ceil": (np.ceil, 0),
}  # fmt: skip


@compiled
@pytest.mark.parametrize("name", UNARY)
def test_unary_functions_and_their_special_values(engine, kernels, name, rng):
    function, ulps = UNARY[name]
    for dtype in (np.float32, np.float64):
        given = np.concatenate([SPECIAL, rng.uniform(-20, 20, 1000), rng.uniform(-110, 90, 1000), SPECIAL]).astype(
            dtype
        )
        if name == "sin":
            given[np.abs(given) > 1e6] = 1e5
        wide = np.float64 if dtype == np.float32 else np.longdouble
        # Exact functions in their own dtype: a wider one would round twice.
        expected = function(given.astype(wide) if ulps else given).astype(dtype)
        found = engine.unwrap(kernels[name](engine.wrap(given)))
        assert np.array_equal(np.isnan(found), np.isnan(expected))
        zero = expected == 0
        assert np.array_equal(np.signbit(found[zero]), np.signbit(expected[zero]))
        finite = np.isfinite(expected)
        assert np.array_equal(found[~finite], expected[~finite], equal_nan=True)
        off = np.abs(found[finite].astype(wide) - expected[finite]) / np.spacing(np.abs(expected[finite]))
        assert off.max() <= ulps


@compiled
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_every_number_of_two_bytes(engine, kernels, dtype):
    given = np.arange(1 << 16, dtype=np.uint16).view(dtype)
    found = engine.unwrap(kernels["mul"](engine.wrap(given), 1.0))
    assert np.array_equal(np.isnan(found), np.isnan(given))
    same = ~np.isnan(given)
    assert np.array_equal(found.view(np.uint16)[same], given.view(np.uint16)[same])
    third = engine.unwrap(kernels["div"](engine.wrap(given), 3.0))
    expected = (given.astype(np.float32) / np.float32(3)).astype(dtype)
    assert np.array_equal(third.view(np.uint16)[same], expected.view(np.uint16)[same])


@compiled
@pytest.mark.parametrize("shape", [(1,), (15,), (17,), (1, 1000), (7, 33), (300, 257)])
def test_rows_and_reductions_of_odd_sizes(engine, kernels, shape, rng):
    x = rng.standard_normal(shape).astype(np.float32)
    e = np.exp(x.astype(np.float64))
    assert np.allclose(engine.unwrap(kernels["_softmax"](engine.wrap(x), -1)), e / e.sum(-1, keepdims=True), 1e-5)
    assert np.allclose(engine.unwrap(kernels["sum"](engine.wrap(x), -1)), x.sum(-1), 1e-5, 1e-5)
    assert np.allclose(engine.unwrap(kernels["cumsum"](engine.wrap(x), -1)), x.cumsum(-1), 1e-4, 1e-4)
    assert np.array_equal(engine.unwrap(kernels["sort"](engine.wrap(x), -1)[0]), np.sort(x, -1))


@compiled
def test_views_are_not_copied(engine, kernels, rng):
    x = rng.standard_normal((40, 50)).astype(np.float32)
    for view in (x.T, x[::-1], x[:, ::-2], x[3:, 5:30], np.broadcast_to(x[0], (40, 50)), x[:0], x[2, 3:4]):
        wrapped = engine.wrap(view)
        assert np.shares_memory(wrapped.buffer.array, x) or not view.size
        assert np.array_equal(engine.unwrap(wrapped), view)
        assert np.array_equal(engine.unwrap(kernels["neg"](wrapped)), -view)


@compiled
def test_results_are_base_arrays(engine, kernels):
    assert engine.unwrap(kernels["neg"](engine.wrap(np.ones((3, 4), np.float32)))).base is None


@compiled
def test_the_same_bits_for_any_number_of_threads(engine, kernels, rng):
    x = rng.standard_normal((999, 1025)).astype(np.float32)
    calls = (lambda v: kernels["exp"](v), lambda v: kernels["sum"](v, None), lambda v: kernels["cumsum"](v, 1),
             lambda v: kernels["sum"](v, 0), lambda v: kernels["_softmax"](v, 1))  # fmt: skip
    before, found = torch.get_num_threads(), []
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.append([engine.unwrap(call(engine.wrap(x))).tobytes() for call in calls])
    finally:
        torch.set_num_threads(before)
    assert found[0] == found[1] == found[2]


@compiled
def test_threads_of_the_user(engine, kernels, rng):
    x = rng.standard_normal((600, 1024)).astype(np.float32)
    found: list = [None] * 4

    def run(k):
        found[k] = engine.unwrap(kernels["add"](engine.wrap(x), float(k)))

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(4):
        assert np.array_equal(found[k], x + np.float32(k))


@compiled
def test_a_bad_index_is_an_error(engine, kernels):
    from torchlite_backends.device_runtime.core.device_asserts import raise_pending

    x, bad = np.ones((4, 5), np.float32), np.full((4, 2), 7)
    with pytest.raises(RuntimeError, match="index 7 is out of bounds for dimension 1 with size 5"):
        kernels["gather"](engine.wrap(x), 1, engine.wrap(bad))
        raise_pending(engine)


# -- programs --

_SHARING = """
KERNEL void turned(OUT(int, out), const int n) {
    LOCAL_ARRAY(int, shared, 4);
    shared[THREAD] = ITEM;
    BARRIER;
    AT(out)[ITEM] = shared[THREADS - 1 - THREAD];
}
"""


@compiled
def test_items_that_share_memory_run_in_groups_of_one(engine):
    from torchlite_backends.device_runtime.core.array import empty

    function, out = engine.function(_SHARING, "turned", "pi"), empty(engine, (4,), "i32")
    function((4,), (1,), out, 4)
    assert engine.unwrap(out).tolist() == [0, 1, 2, 3]
    with pytest.raises(RuntimeError, match="cannot run in work-groups"):
        function((4,), (4,), out, 4)


@compiled
def test_compile_errors_show_the_source_line(engine):
    with pytest.raises(RuntimeError, match=r"(?s)could not build a kernel.*nonsense.*2 KERNEL void f"):
        engine.function("KERNEL void f(OUT(int, out)) { nonsense; }", "f", "p")


_USE = """
import numpy as np
from torchlite_backends.cc.device import Device
from torchlite_backends.device_runtime.backend import kernels_of
device = Device(0, {may_build})
x = np.ones(4096, np.float32)
print(device.unwrap(kernels_of(device)["neg"](device.wrap(x)))[0])
"""


def _python(code, folder, **variables):
    environment = {**os.environ, "TORCHLITE_CACHE_DIR": str(folder), **variables}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)


@compiled
def test_programs_on_the_disk(tmp_path):
    refused = _python(_USE.format(may_build=False), tmp_path)
    assert "NotBuiltError" in refused.stderr and "build-kernels" in refused.stderr
    assert _python(_USE.format(may_build=True), tmp_path).stdout.strip() == "-1.0"
    assert _python(_USE.format(may_build=False), tmp_path).stdout.strip() == "-1.0"
    (program,) = tmp_path.rglob("*.so")
    program.write_bytes(program.read_bytes()[:-100])
    assert "NotBuiltError" in _python(_USE.format(may_build=False), tmp_path).stderr
    assert _python(_USE.format(may_build=True), tmp_path).stdout.strip() == "-1.0"
    assert not [p for p in tmp_path.rglob("*") if ".part" in p.name]


def test_without_a_compiler(tmp_path):
    found = _python(
        "from torchlite_backends.cc import program_build; print(program_build.why_not())",
        tmp_path,
        PATH=str(tmp_path),
        CXX="",
    )
    assert found.stdout.startswith("no C++ compiler was found")


def test_an_unknown_sanitizer_is_refused(monkeypatch):
    monkeypatch.setenv("TORCHLITE_CC_SANITIZE", "memory")
    with pytest.raises(ValueError, match="use one of address, undefined"):
        cxx_compiler.sanitizer()


@compiled
def test_building_in_advance(tmp_path, monkeypatch):
    from torchlite_backends.cc import cpu_engine, prebuild

    monkeypatch.setenv("TORCHLITE_CACHE_DIR", str(tmp_path))
    x, told = np.ones((64, 64), np.float32), []

    def run():
        noted = cpu_engine.engine.device()
        kernels_of(noted)["neg"](noted.wrap(x))
        kernels_of(noted)["neg"](noted.wrap(x.T))

    texts = cpu_engine.engine.record_programs(run)
    assert len(texts) == 2
    program_build.is_prebuilt.cache_clear()
    try:
        assert not program_build.is_prebuilt()
        assert prebuild.build_programs(texts, lambda done, of: told.append((done, of))) == []
        assert told == [(n, 8) for n in range(1, 9)]  # and those of threads, convolutions, chains and integers (three)
        assert prebuild.build_programs(texts, lambda done, of: told.append((done, of))) == []
        assert len(told) == 8
        program_build.is_prebuilt.cache_clear()
        assert program_build.is_prebuilt()
    finally:
        program_build.is_prebuilt.cache_clear()
    ready = Device(0, may_build=False)
    assert ready.sharing is not None
    assert ready.unwrap(kernels_of(ready)["neg"](ready.wrap(x)))[0, 0] == -1
    with pytest.raises(NotBuiltError):
        kernels_of(ready)["exp"](ready.wrap(x))


_ANY = """
KERNEL void found(IN(float, x), OUT(int, out), const int n) {
    for (int i = 0; i + 16 <= n; i += 16) {
        float16 v = vload16(0, AT(x) + i);
        double16 wide = convert_double16(v);
        AT(out)[i / 16] = any(v > float16(0)) + 2 * any(wide > double16(0)) + 4 * any(!(v <= float16(0)));
    }
}
"""


@compiled
def test_whether_any_element_is_set(engine):
    from torchlite_backends.device_runtime.core.array import empty

    x = -np.ones((17, 16), np.float32)
    x[np.arange(16), np.arange(16)] = 1
    out = empty(engine, (17,), "i32")
    engine.function(_ANY, "found", "ppi")((1,), (1,), engine.wrap(x), out, x.size)
    assert engine.unwrap(out).tolist() == [7] * 16 + [0]


@compiled
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int64, np.bool_])
@pytest.mark.parametrize("turn", [lambda x: x, lambda x: x.T, lambda x: x[1:, 1:], lambda x: x[::-1]])
def test_results_past_the_caches(engine, kernels, monkeypatch, dtype, turn):
    monkeypatch.setattr("torchlite_backends.cc.device._NONTEMPORAL_MIN_BYTES", 0)
    x = (np.arange(130 * 77).reshape(130, 77) % 50).astype(dtype)
    y = (np.arange(77 * 130).reshape(130, 77) % 3).astype(dtype)
    found = engine.unwrap(kernels["mul"](engine.wrap(turn(x)), engine.wrap(turn(y))))
    assert (found == turn(x) * turn(y)).all()
    target = np.zeros(x.size + 1, dtype)[1:].reshape(x.shape)  # not at a multiple of 16 bytes
    wrapped = engine.wrap(target)
    kernels["add_"](wrapped, engine.wrap(x))
    assert (target == x).all()


# -- threads --

_SHARED = """
KERNEL void squares(IN(float, x), OUT(float, out), const int n) {
    for (int i = ITEM * 64; i < ITEM * 64 + 64 && i < n; i++) AT(out)[i] = AT(x)[i] * AT(x)[i];
}
"""


def _squares(device, n=1 << 20):
    """The squares of some numbers by a kernel whose launch is large enough for several threads."""
    function = device.function(_SHARED, "squares", "ppi")
    x = np.arange(n, dtype=np.float32)
    out = np.zeros_like(x)
    function((-(-n // 64),), None, device.wrap(x), device.wrap(out), n)
    return bool((out == x * x).all())


@compiled
@pytest.mark.parametrize("threads", [1, 2, 3, 5])
def test_a_launch_is_shared(engine, threads):
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        assert all(_squares(engine) for _ in range(20))
    finally:
        torch.set_num_threads(before)


@compiled
def test_without_the_program_of_threads_pythons_serve(monkeypatch):
    device = Device()
    monkeypatch.setitem(device.__dict__, "sharing", None)
    assert _squares(device)


@compiled
def test_user_threads_launch_at_once(engine):
    found = []

    def work():
        found.append(all(_squares(engine) for _ in range(20)))

    users = [threading.Thread(target=work) for _ in range(4)]
    for user in users:
        user.start()
    for user in users:
        user.join()
    assert found == [True] * 4


_FORKED = """
import os, warnings
import numpy as np
import torchlite as torch
from tests.backends.cc.test_program_build import _squares
from torchlite_backends.cc.device import Device
warnings.simplefilter("ignore")
torch.set_num_threads(3)
device = Device()
def threads():
    return len(os.listdir("/proc/self/task"))
assert _squares(device) and threads() >= 3
child = os.fork()
if not child:
    alone = threads()
    os._exit(not (alone == 1 and all([_squares(device) for _ in range(5)]) and threads() == 3))
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), all([_squares(device) for _ in range(5)]))
"""


@compiled
@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted by Linux's /proc")
def test_a_forked_child_starts_new_threads(tmp_path):
    path = os.pathsep.join([os.getcwd(), *filter(None, sys.path)])
    found = _python(_FORKED, tmp_path, PYTHONPATH=path)
    assert found.stdout.split() == ["0", "True"], found.stderr


_IDLE = """
import time, warnings
import torchlite as torch
from tests.backends.cc.test_program_build import _squares
from torchlite_backends.cc.device import Device
warnings.simplefilter("ignore")
torch.set_num_threads(2)
device = Device()
assert all([_squares(device) for _ in range(20)])
time.sleep(0.05)
before = time.process_time()
time.sleep(0.4)
print(time.process_time() - before < 0.02)
"""


@compiled
def test_threads_that_have_nothing_to_do_sleep(tmp_path):
    path = os.pathsep.join([os.getcwd(), *filter(None, sys.path)])
    found = _python(_IDLE, tmp_path, PYTHONPATH=path)
    assert found.stdout.split() == ["True"], found.stderr
