"""The effects of a file's program on the host: while the file is read, and in a call."""

import io

import pytest

import torchlite as torch
from tests.hostile.program_bombs import lines, script, setting
from torchlite.jit import _builtin_ops, _inline_cache


def _load(data):
    return torch.jit.load(io.BytesIO(data))


def _run(*statements, **more):
    return _load(script(lines(*statements), **more))(torch.ones(2))


# -- __setstate__ --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "statements",
    [
        ("while True:", "  pass"),
        ("for i in range(1000000000000):", "  pass"),
        ("a = [1]", "while True:", "  a = sorted(a)"),
        ("a = [j for j in range(500000)]", "while True:", "  b = a[1:]"),
        ("def f(n):", "  while True:", "    n = n + 1", "  return n", "return f(1)"),
        ("a = torch.full([1000, 1000, 1000], 1.5)",),
        ("a = torch.arange(0.0, 1.0, 0.000000001)",),
        ("a = torch.clone(torch.expand(torch.ones([1]), [1000000000]))",),
        ("a = torch.ones([100000, 1]) + torch.ones([1, 100000])",),
    ],
)
def test_a_file_that_does_too_much_while_it_is_read(statements):
    with pytest.raises(RuntimeError, match=r"a __setstate__ of the file .* than a file of this length can need \(in"):
        _load(setting(*statements))


@pytest.mark.parametrize("name", ["mm(a, a)", "linalg_svd(a)", "conv2d(a, a)", "one_hot(a, 5)"])
def test_operators_that_reading_does_not_call(name):
    with pytest.raises(RuntimeError, match=f"calls aten::{name.partition('(')[0]}, whose work may be more"):
        _load(setting("a = torch.ones([1, 1])", f"b = torch.{name}"))


def test_numbers_that_are_no_sizes():
    """Fill values, dtypes and steps ask for no memory."""
    _load(setting("a = torch.full([4], 1000000000.0)", "b = torch.zeros([100000], dtype=6)",
                  "c = torch.arange(0.0, 1.0, 0.001)", "d = torch.new_full(a, [2], -1e30)", "e = torch.chunk(b, 4)",
                  "f = torch.where(a > 0, a, torch.zeros([1]))"))  # fmt: skip


def test_setstate_runs_at_load():
    """A table built from a list, a tensor that is converted, and a parameter in the state."""

    class Vocabulary(torch.nn.Module):
        table: dict[str, int]

        def __init__(self, words: list[str]):
            super().__init__()
            self.words = words
            self.table = {}
            self.scale = torch.nn.Parameter(torch.ones(3, 2))

        @torch.jit.export
        def __getstate__(self) -> tuple[list[str], torch.Tensor, bool]:
            return (self.words, self.scale, self.training)

        @torch.jit.export
        def __setstate__(self, state: tuple[list[str], torch.Tensor, bool]) -> None:
            self.words = state[0]
            self.table = torch.jit.annotate(dict[str, int], {})
            for i, word in enumerate(state[0]):
                self.table[word] = i
            self.scale = state[1].t().contiguous() * 2.0 + torch.zeros(1, 3)
            self.training = state[2]

        def forward(self, word: str) -> torch.Tensor:
            return self.scale + self.table[word]

    made = torch.jit.script(Vocabulary([f"w{i}" for i in range(3000)]))
    file = io.BytesIO()
    torch.jit.save(made, file)
    found = _load(file.getvalue())
    assert torch.equal(found("w2999"), torch.full((2, 3), 3001.0))
    assert [name for name, _ in found.named_parameters()] == ["scale"]


def test_functions_do_not_count_after_reading():
    """They are compiled twice; what runs later has no budget."""
    found = _load(
        setting("self.training = False", "a = __torch__.f(10)", extra=(
            "def f(n: int):\n  a = 0\n  for i in range(n):\n    a = a + i\n  return a\n"
        ), after="  def long(self):\n    return __torch__.f(200000)\n")
    )  # fmt: skip
    assert found.long() == sum(range(200_000))
    program = found._script.program
    assert not program.counts and not program.counted and not program.named_places


# -- modes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [True, False])
def test_the_mode_of_gradients_is_the_hosts(mode):
    before = torch.is_grad_enabled()
    off = f"_ = torch.set_grad_enabled({not mode})"
    loaded = _load(script(lines(off, "return [torch.is_grad_enabled()]")))
    raising = _load(script(lines(off, "raise Exception('a')")))
    frozen = torch.jit.freeze(loaded.eval())
    try:
        torch.set_grad_enabled(mode)
        assert loaded(torch.ones(1)) == frozen(torch.ones(1)) == [not mode] and torch.is_grad_enabled() is mode
        with pytest.raises(torch.jit.Error):
            raising(torch.ones(1))
        assert torch.is_grad_enabled() is mode
        _load(setting(off))
        assert torch.is_grad_enabled() is mode
    finally:
        torch.set_grad_enabled(before)


def test_the_mode_after_objects_and_properties_of_a_file():
    extra = "class C:\n  a : int\n  def f(self):\n    _ = torch.set_grad_enabled(False)\n    return 1\n" \
        "  def __add__(self, o: int):\n    _ = torch.set_grad_enabled(False)\n    return 1\n"  # fmt: skip
    after = "  def __p_getter(self):\n    _ = torch.set_grad_enabled(False)\n    return 1\n"
    found = _load(script(lines("return [__torch__.C.__new__(__torch__.C)]"), extra=extra, after=after))
    made = found(torch.ones(1))[0]
    assert made.f() == made + 1 == found.p == 1 and torch.is_grad_enabled()


def _off(x):
    torch.set_grad_enabled(False)
    return x


def test_a_compiled_script_may_set_grad_mode():
    """As in PyTorch."""
    try:
        torch.jit.script(_off)(torch.ones(1))
        assert not torch.is_grad_enabled()
    finally:
        torch.set_grad_enabled(True)


# -- values and errors -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("return {'a': 1}['b']", "KeyError: 'b'"),
        ("return [1][5]", "IndexError"),
        ("return divmod(1, 0)", "ZeroDivisionError"),
        ("return chr(99999999999)", "OverflowError"),
        ("return ord('ab')", "TypeError"),
        ("return int('a')", "ValueError"),
        ("return 'abc'['a':'b']", "TypeError"),
        ("return self.forward(x)", "too deep"),
        ("return {[1]: 2}", "unhashable"),
        ("return [1].index(2)", "ValueError: '2' is not in list"),
    ],
)
def test_errors_of_a_program_are_runtime_errors(statement, said):
    with pytest.raises(RuntimeError, match=f"(?s)failed in the TorchScript interpreter.*{said}") as found:
        _run(statement)
    assert not isinstance(found.value, (KeyError, TypeError, ValueError, RecursionError))


def test_errors_of_a_forked_function():
    future = _run("return fork(__torch__.f, 1)", extra="def f(n: int):\n  return {1: 2}[3]\n")
    with pytest.raises(RuntimeError, match="KeyError: 3"):
        future.wait()


def test_missing_arguments_raise():
    with pytest.raises(RuntimeError, match="missing value for argument 'x'"):
        _load(script(lines("return x")))()


def test_lists_within_lists_that_end():
    """A list whose items are all different may have any length."""
    rows = _run("a = [[i, i] for i in range(300000)]", "b = [[i, i] for i in range(300000)]", "return [a, b, [a == b]]")
    assert rows[0] == rows[1] and rows[2] == [True]
    assert _run("a = (1, (2, 'a'))", "d = {a: 1}", "return [d[(1, (2, 'a'))], d[a], sorted([(2, 1), (1, 2)])]") == [
        1, 1, [(1, 2), (2, 1)]
    ]  # fmt: skip


def test_the_search_from_the_right_has_a_bound():
    assert _run("return torch.rsplit('a b c', ' ', 1)") == ["a b", "c"]
    assert _run("return torch.rfind('abcabc', 'bc')") == 4
    with pytest.raises(RuntimeError, match="from the right"):
        _run("a = 'a' * 500000", "return torch.rfind(a, 'a' * 200000 + 'b')")


def test_files_do_not_fill_the_caches_of_calls():
    """A file's calls do not fill the caches of call signatures and of operators by class."""
    for i in range(40):
        names = ", ".join(f"[x, {', '.join(['x'] * j)}]" for j in range(1, i % 6 + 2))
        _run(f"a = [{', '.join(['x'] * (i + 1))}]", f"b = torch.cat([{'x, ' * i} x])", f"c = [{names}]", "return b")
    kept = _inline_cache._make_function.cache_info()
    assert kept.maxsize is not None and kept.currsize <= kept.maxsize
    found = _builtin_ops.find_operator("torch.format", 10)
    for i in range(500):
        found("{}" * i, *[1] * i)
    assert len(found._runs) <= _builtin_ops._CACHE_SIZE
