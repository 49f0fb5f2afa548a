"""Shared state, used by eight threads at once: a test for each kind of state that is written after import."""

from __future__ import annotations

import io
import subprocess
import sys
import time
from contextlib import contextmanager

import pytest

import torchlite as torch
import torchlite.autograd.forward_ad as fwAD
import torchlite.distributions as D
from torchlite._dispatch import copy_on_write
from torchlite._dispatch.dispatch_state import change_counters
from torchlite.nn.utils import parametrize
from torchlite.utils.checkpoint import checkpoint

from . import in_threads


def test_gradients_of_shared_leaves_are_all_added():
    for size in (3, 2000):  # NumPy lets other threads run within larger additions
        w = torch.zeros(size, requires_grad=True)
        in_threads(lambda _, w=w: [(w * 1.0).sum().backward() for _ in range(100)])
        assert torch.equal(w.grad, torch.full((size,), 800.0))


def test_several_threads_backward_through_a_retained_graph():
    x = torch.ones(4, requires_grad=True)
    h = (x * 2).exp()
    in_threads(lambda _: [h.sum().backward(retain_graph=True) for _ in range(50)])
    assert torch.allclose(x.grad, 400 * 2 * torch.exp(torch.tensor(2.0)).expand(4))


@pytest.mark.filterwarnings("ignore:Using backward:UserWarning")
def test_graphs_with_create_graph_add_to_shared_leaves():
    w = torch.ones(2, requires_grad=True)
    in_threads(lambda _: [(w * w).sum().backward(create_graph=True) for _ in range(40)])
    assert torch.equal(w.grad.detach(), torch.full((2,), 640.0))
    w.grad = None  # the gradient's graph holds the leaf


def test_versions_count_every_write():
    w = torch.zeros(3)
    in_threads(lambda _: [w.add_(1) for _ in range(200)])
    assert w._version == 1600 and w[0] == 1600


def test_views_of_one_base_are_written_side_by_side():
    base = torch.zeros(64)

    def work(k: int) -> None:
        for _ in range(100):
            part = base[k * 8 : (k + 1) * 8]
            part.add_(1)
            part.view(2, 4)[0].mul_(1)

    in_threads(work)
    assert torch.equal(base, torch.full((64,), 100.0))


def test_a_tensor_has_one_storage_for_all_threads():
    for _ in range(60):
        x = torch.zeros(8)
        assert len({id(s) for s in in_threads(lambda _, x=x: x.untyped_storage())}) == 1


def test_lazy_clones_are_written_apart():
    x = torch.arange(64.0)

    def work(k: int) -> None:
        for _ in range(4):  # each write looks at all objects of the process
            y = x._lazy_clone()
            y.add_(k)
            assert y[5] == 5 + k

    in_threads(work)
    assert torch.equal(x, torch.arange(64.0))


def test_writes_are_checked_before_other_threads_find_shared_memory(monkeypatch):
    def change_slowly(**changes: int) -> None:
        if changes.get("WRITE_CHECKS") == 1:
            time.sleep(0.005)  # other threads clone and write meanwhile
        change_counters(**changes)

    monkeypatch.setattr(copy_on_write, "change_counters", change_slowly)
    for _ in range(5):
        x = torch.arange(64.0)
        in_threads(lambda k, x=x: x._lazy_clone().add_(k))
        assert torch.equal(x, torch.arange(64.0))


def test_modes_are_per_thread():
    def work(k: int) -> None:
        for _ in range(40):
            with torch.no_grad():
                assert not torch.is_grad_enabled()
            assert torch.is_grad_enabled()
            with torch.inference_mode():
                assert torch.ones(1).is_inference()
            assert not torch.ones(1).is_inference()
            with torch.autocast("cpu", dtype=torch.bfloat16):
                assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.bfloat16
            assert (torch.ones(2, 2) @ torch.ones(2, 2)).dtype is torch.float32
            with torch.device("meta"):
                assert torch.ones(2).is_meta
            assert not torch.ones(2).is_meta
            assert torch.equal(
                torch.func.grad(lambda x: (x * x).sum())(torch.full((2,), float(k))), 2.0 * k * torch.ones(2)
            )
            assert torch.equal(torch.vmap(lambda x: x * k)(torch.ones(2, 2)), k * torch.ones(2, 2))

    in_threads(work)
    from torchlite._dispatch.dispatch_state import GLOBALS

    assert GLOBALS["INTERCEPTORS"] == 0


def test_forward_ad_levels_are_per_thread():
    def work(k: int) -> None:
        for _ in range(30):
            with fwAD.dual_level():
                dual = fwAD.make_dual(torch.ones(2) * k, torch.ones(2))
                assert fwAD.unpack_dual(dual * dual).tangent[0] == 2 * k
        assert fwAD._current_level == -1

    in_threads(work)


def test_saved_tensor_hooks_are_per_thread():
    def work(k: int) -> None:
        def unpack(packed):
            assert packed[0] == k
            return packed[1]

        for _ in range(30):
            with torch.autograd.graph.saved_tensors_hooks(lambda x: (k, x), unpack):
                x = torch.ones(2, requires_grad=True)
                y = (x * x).exp().sum()
            y.backward()

    in_threads(work)


def test_user_modes_see_only_their_thread():
    from torchlite.overrides import TorchFunctionMode
    from torchlite.utils._python_dispatch import TorchDispatchMode

    class Functions(TorchFunctionMode):
        seen = 0

        def __torch_function__(self, function, types, args=(), kwargs=None):
            self.seen += 1
            return function(*args, **(kwargs or {}))

    class Dispatched(TorchDispatchMode):
        seen = 0

        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            self.seen += 1
            return function(*args, **(kwargs or {}))

    def work(k: int) -> None:
        x = torch.ones(2)
        for _ in range(20):
            if k % 2:
                torch.add(x, 1)
                continue
            for kind in (Functions, Dispatched):
                with kind() as mode:
                    torch.add(x, 1)
                assert mode.seen == 1

    in_threads(work)


@contextmanager
def doubled(module: torch.nn.Module):
    class Double(torch.nn.Module):
        def forward(self, x):
            return x * 2

    parametrize.register_parametrization(module, "weight", Double())
    yield
    parametrize.remove_parametrizations(module, "weight")


def test_parametrizations_are_cached_while_any_thread_asks():
    module = torch.nn.Linear(2, 2)
    with doubled(module):

        def work(_: int) -> None:
            for _ in range(60):
                with parametrize.cached():
                    assert module.weight is module.weight
                    module(torch.ones(1, 2))

        in_threads(work)
    assert parametrize._cache_depth == 0 and parametrize._cache == {}


def test_hooks_are_added_and_removed_during_calls_and_backward():
    module, x = torch.nn.Linear(2, 2), torch.ones(1, 2, requires_grad=True)

    def work(_: int) -> None:
        for _ in range(30):
            handles = [
                module.register_forward_hook(lambda *a: None),
                module.register_full_backward_hook(lambda *a: None),
                module.weight.register_hook(lambda g: None),
                torch.nn.modules.module.register_module_forward_hook(lambda *a: None),
            ]
            module(x).sum().backward()
            for handle in handles:
                handle.remove()

    in_threads(work)
    assert not module._forward_hooks and not module._backward_hooks


def test_one_thread_profiles_beside_others():
    def work(k: int) -> None:
        for _ in range(8):
            if k:
                (torch.ones(3) * 2).exp()
            else:
                with torch.profiler.profile() as profile:
                    (torch.ones(3) * 2).sum()
                assert any("sum" in event.key for event in profile.key_averages())

    in_threads(work)


def test_programs_of_ops_are_added_by_several_threads():
    def work(k: int) -> None:
        for i in range(8):

            @torch.library.custom_op(f"race{k}::f{i}", mutates_args=())
            def twice(x: torch.Tensor) -> torch.Tensor:
                return x * 2

            twice.register_fake(torch.empty_like)
            assert getattr(getattr(torch.ops, f"race{k}"), f"f{i}")(torch.ones(2))[0] == 2

    in_threads(work)


def test_of_threads_that_define_a_namespace_one_succeeds():
    for i in range(20):
        kept = []

        def work(_: int, i: int = i, kept: list = kept) -> int:
            try:
                kept.append(torch.library.Library(f"race_of_{i}", "DEF"))
            except RuntimeError:
                return 0
            return 1

        assert sum(in_threads(work)) == 1


def test_several_threads_create_kernel_plans(device):
    def work(k: int) -> None:
        for i in range(15):
            a = torch.ones(2 + i % 7, 3 + k, device=device)
            assert torch.einsum("ij,kj->ik", a, a)[0, 0] == 3 + k
            assert a.t().contiguous().reshape(-1)[1:].sum() == a.numel() - 1
            assert torch.allclose(a.softmax(1).sum(1), torch.ones(2 + i % 7, device=device))
            image, kernel = torch.ones(1, 1, 5 + k, 5, device=device), torch.ones(1, 1, 3, 3, device=device)
            assert torch.nn.functional.conv2d(image, kernel).max() == 9
            assert torch.fft.fft(torch.ones(8 + k, device=device))[0].real == 8 + k

    in_threads(work)


def test_optimizers_step_in_threads():
    def work(_: int) -> None:
        model = torch.nn.Linear(3, 1)
        for kind in (torch.optim.Adam, torch.optim.SGD, torch.optim.AdamW, torch.optim.RMSprop):
            optimizer = kind(model.parameters(), lr=0.01)
            for _ in range(5):
                optimizer.zero_grad()
                model(torch.ones(2, 3)).sum().backward()
                optimizer.step()
        assert torch.isfinite(model.weight).all()

    in_threads(work)


def test_distributions_are_compared_in_threads():
    def work(_: int) -> None:
        for _ in range(20):
            normal, gamma = D.Normal(torch.zeros(2), torch.ones(2)), D.Gamma(torch.ones(1), torch.ones(1))
            assert D.kl_divergence(normal, normal).sum() == 0 and D.kl_divergence(gamma, gamma).sum() == 0
            assert normal.rsample().shape == (2,)

    in_threads(work)


def test_files_and_loaders_in_threads():
    data = [torch.tensor(float(i)) for i in range(32)]

    def work(k: int) -> None:
        for _ in range(4):
            file = io.BytesIO()
            torch.save({"a": torch.ones(3) * k}, file)
            file.seek(0)
            assert torch.load(file)["a"][0] == k
            assert sum(float(b.sum()) for b in torch.utils.data.DataLoader(data, batch_size=4, shuffle=True)) == 496

    in_threads(work)


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpoints_are_recomputed_in_threads(reentrant):
    def work(k: int) -> None:
        for _ in range(10):
            x = torch.ones(2, requires_grad=True)
            checkpoint(lambda a: torch.dropout(a * k, 0.5, True), x, use_reentrant=reentrant).sum().backward()
            assert all(g in (0, 2 * k) for g in x.grad.tolist())

    in_threads(work)


def test_the_default_dtype_changes_beside_calls():
    def work(k: int) -> None:
        for i in range(100):
            if k == 0:
                torch.set_default_dtype(torch.float64 if i % 2 else torch.float32)
            else:
                assert torch.ones(2).dtype in (torch.float32, torch.float64)

    try:
        in_threads(work)
    finally:
        torch.set_default_dtype(torch.float32)


_FIRST_USES = """
import sys, threading, warnings
warnings.simplefilter("ignore")
import torchlite as torch
from tests.threads import in_threads

def work(k):
    out = []
    for name in sys.argv[1].split(","):
        found = torch
        for part in name.split("."):
            found = getattr(found, part)
        out.append(found)
    x = torch.ones(3, requires_grad=True)
    (x.exp().softmax(0) @ torch.ones(3)).backward()
    torch.nn.Linear(3, 2)(x).sum().backward()
    return out

found = in_threads(work)
assert all(a is b for other in found for a, b in zip(found[0], other)), "one object for all"
"""


@pytest.mark.parametrize(
    "names",
    [
        "rand,distributions.Normal,optim.Adam,fft.fft",
        "func.vmap,nn.functional.relu,sparse_coo_tensor,Generator",
        "ops.aten.add.Tensor,special.erf,utils.data.DataLoader,amp.GradScaler",
        "library.custom_op,profiler.profile,linalg.svd,_foreach_add,save",
    ],
)
def test_first_uses_from_several_threads(names):
    done = subprocess.run([sys.executable, "-c", _FIRST_USES, names], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
