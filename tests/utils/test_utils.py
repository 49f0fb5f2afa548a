"""Tools of `torch.utils` and `torch.hub`."""

from __future__ import annotations

import gc
import hashlib
import importlib.util
import io
import pathlib

import pytest

import torchlite as torch
from torchlite.utils import benchmark, collect_env, cpp_extension, flop_counter, weak
from torchlite.utils._device import DeviceContext, set_device
from torchlite.utils.module_tracker import ModuleTracker

F = torch.nn.functional


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.c = torch.nn.Conv2d(3, 8, 3)
        self.l = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Linear(16, 4))

    def forward(self, x):
        return self.l(self.c(x).mean((2, 3)))


def _attention():
    q = torch.ones(2, 4, 8, 16, requires_grad=True)
    F.scaled_dot_product_attention(q, q, q).sum().backward()


def _grouped():
    x = torch.ones(2, 4, 5, 5, requires_grad=True)
    torch.nn.ConvTranspose2d(4, 6, 3, groups=2)(x).sum().backward()


def _self_attention():
    x = torch.ones(3, 2, 8)
    torch.nn.MultiheadAttention(8, 2)(x, x, x)[0].sum().backward()


def _products():
    torch.bmm(torch.ones(2, 3, 4), torch.ones(2, 4, 5))
    torch.baddbmm(torch.ones(2, 3, 5), torch.ones(2, 3, 4), torch.ones(2, 4, 5))


# Recorded from PyTorch, but attention, of which its counter knows no formula on the CPU.
COUNTS = {
    "net": (
        lambda: Net()(torch.ones(2, 3, 10, 10)).sum().backward(),
        {"convolution": 55296, "addmm": 768, "mm": 1536, "convolution_backward": 55296},
    ),
    "grouped": (_grouped, {"convolution": 10800, "convolution_backward": 32400}),
    "attention in a module": (_self_attention, {"addmm": 3072, "bmm": 1728, "mm": 3840}),
    "products": (_products, {"bmm": 240, "baddbmm": 240}),
    "attention": (
        _attention,
        {
            "_scaled_dot_product_flash_attention_for_cpu": 32768,
            "_scaled_dot_product_flash_attention_for_cpu_backward": 81920,
        },
    ),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_of_operations(name):
    run, wanted = COUNTS[name]
    with flop_counter.FlopCounterMode(display=False) as counter:
        run()
    assert {str(op): n for op, n in counter.get_flop_counts()["Global"].items()} == {
        f"aten.{op}": n for op, n in wanted.items()
    }
    assert counter.get_total_flops() == sum(wanted.values())


def test_counts_by_module(capsys):
    net = Net()
    with flop_counter.FlopCounterMode() as counter:
        net(torch.ones(2, 3, 10, 10)).sum().backward()
    totals = {name: sum(counts.values()) for name, counts in counter.get_flop_counts().items()}
    assert totals == {"Global": 112896, "Net": 112896, "Net.c": 110592, "Net.l": 2304, "Net.l.0": 1536, "Net.l.1": 768}
    shown = capsys.readouterr().out
    assert "112.896K" in shown and "Net.l.0" not in shown and "Net.l.0" in counter.get_table(depth=3)


def test_counts_of_added_ops():
    @torch.library.custom_op("utils_test::work", mutates_args=())
    def work(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    @flop_counter.register_flop_formula(torch.ops.utils_test.work)
    def _(x_shape, out_shape=None, **kwargs):
        return 10 * x_shape.numel()

    mapping = {torch.ops.aten.exp: lambda x, out_shape=None, **kwargs: 1000}
    with flop_counter.FlopCounterMode(display=False, custom_mapping=mapping) as counter:
        work(torch.ones(3).exp())
    assert counter.get_total_flops() == 1030
    with pytest.raises(RuntimeError, match="duplicate registrations"):
        flop_counter.register_flop_formula(torch.ops.utils_test.work)(print)
    with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
        flop_counter.register_flop_formula(print)(print)


def test_modules_that_run():
    class Looking(torch.nn.Linear):
        def forward(self, x):
            seen.append(sorted(tracker.parents))
            return super().forward(x)

    net, seen = Net(), []
    net.l[1] = Looking(16, 4)
    net.l[1].register_full_backward_hook(lambda *_: seen.append((tracker.is_bw, sorted(tracker.parents))))
    with ModuleTracker() as tracker:
        net(torch.ones(1, 3, 5, 5)).sum().backward()
        assert not tracker.is_bw
    assert seen[0] == ["Global", "Net", "Net.l", "Net.l.1"]
    assert seen[1][0] and {"Global", "Net", "Net.l"} <= set(seen[1][1])


def test_timers():
    seen = []
    timer = benchmark.Timer("x + y", setup="y = 1", globals={"x": 1}, label="sum", sub_label="ints", description="d")
    one = timer.timeit(50)
    assert one.number_per_run == 50 and len(one.raw_times) == 1 and one.median == one.mean > 0
    block = timer.blocked_autorange(callback=lambda n, t: seen.append(n), min_run_time=0.002)
    assert sum(block.raw_times) >= 0.002 and len(seen) == len(block.raw_times)
    assert len(timer.adaptive_autorange(0.9, min_run_time=0.001, max_run_time=0.01).raw_times) >= 1
    assert "sum: ints" in repr(one) and "setup: y = 1" in repr(one)
    assert len(benchmark.Measurement.merge([one, block])) == 1
    for refused in (timer.repeat, timer.autorange, timer.collect_callgrind):
        with pytest.raises(NotImplementedError):
            refused()
    with pytest.raises(ValueError, match="times Python statements"):
        benchmark.Timer("x", language="c++")


def test_tables_of_measurements():
    def made(sub, description, time, threads=1):
        task = benchmark.TaskSpec("x", "pass", "", "label", sub, description, None, threads)
        return benchmark.Measurement(1, [time] * 4, task)

    compare = benchmark.Compare([made("a", "one", 1e-6), made("b", "one", 2e-3), made("a", "two", 5e-6)])
    table = str(compare)
    lines = table.splitlines()
    assert " label " in lines[0] and "one" in lines[1] and "two" in lines[1] and lines[2].startswith("1 threads: ")
    assert "1.0" in lines[3] and "5.0" in lines[3] and "2000.0" in lines[4]
    assert "Times are in microseconds (us)." in table
    compare.colorize()
    assert "\033[92m" in str(compare)
    with pytest.raises(ValueError, match="Expected an instance of `Measurement`"):
        benchmark.Compare([1])


def test_units_and_digits():
    assert [benchmark.select_unit(t)[0] for t in (3.0, 2e-3, 5e-6, 1e-9, 1e-12)] == ["s", "ms", "us", "ns", "ns"]
    assert benchmark.trim_sigfig(1234.5, 2) == 1200.0 and benchmark.unit_to_english("us") == "microsecond"
    assert benchmark.ordered_unique([2, 1, 2]) == [2, 1]


def test_fuzzers_draw_the_same_again():
    def draws():
        fuzzer = benchmark.Fuzzer(
            parameters=[
                benchmark.FuzzedParameter("n", minval=4, maxval=64, distribution="loguniform"),
                benchmark.FuzzedParameter("kind", distribution={"a": 0.5, "b": 0.5}),
                benchmark.FuzzedParameter("m", distribution={benchmark.ParameterAlias("n"): 1.0}),
            ],
            tensors=[benchmark.FuzzedTensor("x", size=("n", "m"), min_elements=64, probability_contiguous=0.5)],
            constraints=[lambda p: p["n"] % 2 == 0],
            seed=3,
        )
        return [(t["x"], d["x"], p) for t, d, p in fuzzer.take(5)]

    for (x, described, params), (y, _, again) in zip(draws(), draws(), strict=True):
        assert params == again and torch.equal(x, y) and x.shape == (params["n"], params["n"]) and params["n"] % 2 == 0
        assert described["is_contiguous"] == x.is_contiguous() and described["numel"] == x.numel() >= 64


def test_weak_references():
    x, y = torch.ones(2), torch.ones(2)
    notes = weak.WeakTensorKeyDictionary({x: 1, y: 2})
    reference = weak.TensorWeakRef(x)
    assert (
        notes[x] == 1
        and notes[y] == 2
        and len(notes) == 2
        and reference() is x
        and [id(key) for key in notes] == [id(x), id(y)]
    )
    assert weak.WeakIdRef(x) == weak.WeakIdRef(x) != weak.WeakIdRef(y)
    del x
    gc.collect()
    assert reference() is None and len(notes) == 1 and notes.copy()[y] == 2
    with pytest.raises(KeyError):
        del notes[torch.ones(2)]


def test_default_devices_by_context():
    with DeviceContext("meta"):
        assert torch.ones(2).is_meta and torch.tensor([1.0]).is_meta and not torch.ones(2, device="cpu").is_meta
    assert not torch.ones(2).is_meta
    assert set_device("meta")(lambda: torch.zeros(1))().is_meta


def test_the_environment():
    text = collect_env.get_pretty_env_info()
    for part in ("PyTorch version", "Python version", "numpy==", "OpenCL devices"):
        assert part in text


def test_extensions_are_refused():
    for name in ("load", "load_inline", "CppExtension", "BuildExtension"):
        with pytest.raises(NotImplementedError, match="PyTorch's C\\+\\+ libraries"):
            getattr(cpp_extension, name)("x", [])


@pytest.mark.skipif(
    importlib.util.find_spec("tensorboard") is not None or importlib.util.find_spec("tensorboardX") is not None,
    reason="a package that writes is installed",
)
def test_writers_name_the_missing_package(tmp_path):
    with pytest.raises(ImportError, match=r"torchlite-nd\[tensorboard\]"):
        torch.utils.tensorboard.SummaryWriter(tmp_path)


# -- torch.hub -----------------------------------------------------------------------------

HUBCONF = '''
dependencies = ["numpy"]
from beside import number

def net(n=2, pretrained=False):
    """A layer."""
    import torchlite
    return torchlite.nn.Linear(n, number)
'''


@pytest.fixture
def repository(tmp_path):
    (tmp_path / "hubconf.py").write_text(HUBCONF)
    (tmp_path / "beside.py").write_text("number = 5")
    return tmp_path


def test_models_of_a_folder(repository):
    assert torch.hub.load(str(repository), "net", 3, source="local").weight.shape == (5, 3)
    with pytest.raises(RuntimeError, match="Cannot find callable other in hubconf"):
        torch.hub.load(repository, "other", source="local")
    with pytest.raises(ValueError, match='Unknown source: "x"'):
        torch.hub.load(repository, "net", source="x")
    with pytest.raises(FileNotFoundError):
        torch.hub.load(repository / "none", "net", source="local")
    (repository / "hubconf.py").write_text("dependencies = ['there_is_none_of_this']")
    with pytest.raises(RuntimeError, match="Missing dependencies: there_is_none_of_this"):
        torch.hub.load(repository, "net", source="local")


def test_repositories_that_are_there(repository, tmp_path, monkeypatch):
    home = tmp_path / "hub"
    monkeypatch.setattr(torch.hub, "_hub_dir", None)
    torch.hub.set_dir(home)
    assert torch.hub.get_dir() == str(home)
    folder = home / "pytorch_example_main"
    folder.mkdir(parents=True)
    for name in ("hubconf.py", "beside.py"):
        (folder / name).write_text((repository / name).read_text())
    assert torch.hub.list("pytorch/example", verbose=False) == ["net"]
    assert torch.hub.help("pytorch/example", "net") == "A layer."
    assert torch.hub.load("pytorch/example", "net", verbose=False).in_features == 2


def test_weights_from_the_web(tmp_path, capsys):
    buffer = io.BytesIO()
    torch.save({"w": torch.arange(3)}, buffer)
    digest = hashlib.sha256(buffer.getvalue()).hexdigest()
    source = tmp_path / f"net-{digest[:8]}.pth"
    source.write_bytes(buffer.getvalue())
    url = source.as_uri()
    found = torch.hub.load_state_dict_from_url(url, str(tmp_path / "kept"), check_hash=True)
    assert found["w"].tolist() == [0, 1, 2] and (tmp_path / "kept" / source.name).exists()
    assert "Downloading" in capsys.readouterr().err
    wrong = pathlib.Path(tmp_path / "net-00000000.pth")
    wrong.write_bytes(buffer.getvalue())
    with pytest.raises(RuntimeError, match="invalid hash value"):
        torch.hub.load_state_dict_from_url(wrong.as_uri(), str(tmp_path / "kept"), progress=False, check_hash=True)
    assert not (tmp_path / "kept" / wrong.name).exists()


# -- names -----------------------------------------------------------------------------------


def test_unsupported_features_raise_at_the_call():
    x = torch.ones(2)
    for refused, why in (
        (lambda: x.to_padded_tensor(0.0), "torch.Tensor.to_padded_tensor: nested tensors"),
        (lambda: torch.masked.masked_tensor(x, x > 0), "torch.masked.masked_tensor: masked tensors"),
    ):
        with pytest.raises(NotImplementedError, match=f"torchlite has no {why}"):
            refused()


def test_losses_with_the_reduction_as_a_number():
    x, y = torch.tensor([0.5, -1.0]), torch.tensor([1.0, 0.0])
    for number, name in enumerate(("none", "mean", "sum")):
        expected = F.binary_cross_entropy_with_logits(x, y, reduction=name)
        assert torch.equal(torch.binary_cross_entropy_with_logits(x, y, None, None, number), expected)
        assert torch.equal(
            torch.kl_div(x, y, number),
            F.kl_div(x, y, reduction="none").mean() if name == "mean" else F.kl_div(x, y, reduction=name),
        )
        assert torch.equal(
            torch.poisson_nll_loss(x, y, True, False, 1e-8, number), F.poisson_nll_loss(x, y, reduction=name)
        )
    with pytest.raises(ValueError, match="3 is not a valid value for reduction"):
        torch.hinge_embedding_loss(x, y, 1.0, 3)


def test_products_of_groups():
    ends = torch.tensor([1, 3], dtype=torch.int32)
    a, stack = torch.arange(6.0).reshape(3, 2), torch.arange(8.0).reshape(2, 2, 2)
    by_rows = F.grouped_mm(a, stack, offs=ends)
    assert torch.equal(by_rows, torch.cat([a[:1] @ stack[0], a[1:] @ stack[1]]))
    assert torch.equal(
        F.grouped_mm(stack, a.t(), offs=ends), torch.cat([stack[0] @ a.t()[:, :1], stack[1] @ a.t()[:, 1:]], 1)
    )
    assert torch.equal(F.grouped_mm(a.t(), a, offs=ends)[1], a.t()[:, 1:] @ a[1:])
    assert torch.equal(F.grouped_mm(stack, stack), torch.bmm(stack, stack))
    with pytest.raises(RuntimeError, match="Have to provide offsets"):
        F.grouped_mm(a, stack)


def test_lines_of_a_text():
    text = "one two\nthree\nfour four\n"
    check = torch.testing.FileCheck
    check().check("one").check_same("two").check_next("three").check_not("five").check_count("four", 2, True).run(text)
    check().check_dag("three").check_dag("one").check("four").run(text)
    for wrong in (
        check().check("five"),
        check().check("three").check("one"),
        check().check("one").check_next("four"),
        check().check("one").check_same("three"),
        check().check_not("three").check("four"),
        check().check_count("four", 1, exactly=True),
        check().check_count("four", 3),
        check(),
    ):
        with pytest.raises(RuntimeError):
            wrong.run(text)


def test_the_kind_of_a_compiler(tmp_path, monkeypatch):
    import sys

    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def program(name, text):
        path = tmp_path / name
        path.write_text(f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    program("x86_64-gcc-13", "exit 1")
    program("wrapper", "echo COLLECT_GCC=/usr/lib/ccache/gcc >&2")
    program("other", "echo another compiler")
    program("broken", "exit 1")
    (tmp_path / "cc").symlink_to(tmp_path / "x86_64-gcc-13")
    check = cpp_extension.check_compiler_ok_for_platform
    assert [check(name) for name in ("cc", "wrapper", "other", "broken", "no such program")] == [
        True, True, False, False, False,
    ]  # fmt: skip
