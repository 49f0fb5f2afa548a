"""`torch.library`: ops that programs add. What is expected was recorded from PyTorch 2.13."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Sequence

import numpy as np
import pytest

import torchlite as torch
from torchlite import Tensor
from torchlite.utils._python_dispatch import TorchDispatchMode


@pytest.fixture
def lib():
    """A library that goes with the test."""
    with torch.library._scoped_library("lib_test", "FRAGMENT") as made:
        yield made


def custom(name, **keywords):
    return torch.library.custom_op(f"lib_test::{name}", mutates_args=keywords.pop("mutates_args", ()), **keywords)


def test_custom_op_is_one_op_with_the_given_derivative():
    seen = []

    @custom("scaled")
    def scaled(x: Tensor, s: float = 2.0) -> Tensor:
        assert not torch.is_grad_enabled() or not x.requires_grad
        return x * s

    def setup(ctx, inputs, output):
        seen.append(inputs)
        ctx.s = inputs[1]

    x = torch.ones(3, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"Trying to backward through lib_test.scaled.default but no autograd"):
        scaled(x).sum().backward()
    scaled.register_autograd(lambda ctx, g: (g * ctx.s * 10, None), setup_context=setup)
    y = torch.ops.lib_test.scaled(x)
    assert type(y.grad_fn).__name__ == "GeneratedBackwardFor_lib_test_scaled_defaultBackward"
    y.sum().backward()
    assert x.grad.tolist() == [20.0] * 3 and seen == [(x, 2.0)]
    assert repr(scaled) == "<CustomOpDef(lib_test::scaled)>"
    assert str(scaled._opoverload) == "lib_test.scaled.default"
    assert repr(scaled._opoverload) == "<OpOverload(op='lib_test.scaled', overload='default')>"
    assert str(scaled._opoverload._schema) == "lib_test::scaled(Tensor x, float s=2.) -> Tensor"


@pytest.mark.parametrize(
    "args, kwargs, words",
    [
        ((1,), {}, "Expected a value of type 'Tensor' for argument 'x' but instead found type 'int'"),
        ((), {}, r"is missing value for argument 'x'"),
        (("x", "a"), {}, "Expected a value of type 'float' for argument 's' but instead found type 'str'"),
        (("x",), {"b": 3}, "Unknown keyword argument 'b' for operator 'lib_test::args'"),
        (("x", 1.0, 2), {}, r"expected at most 2 argument\(s\) but received 3"),
    ],
)
def test_calls_that_do_not_fit_the_schema(args, kwargs, words):
    @custom("args")
    def op(x: Tensor, s: float = 2.0) -> Tensor:
        return x * s

    with pytest.raises(RuntimeError, match=words):
        op(*(torch.ones(1) if a == "x" else a for a in args), **kwargs)


def test_an_integer_argument_takes_a_tensor_of_one_number(lib):
    lib.define("times(Tensor x, int n) -> Tensor")
    lib.impl("times", lambda x, n: x * n, "CPU")
    times, x = torch.ops.lib_test.times, torch.ones(2)
    assert times(x, torch.tensor(3)).tolist() == [3, 3]
    for value in torch.tensor([1, 2]), torch.ones(2, 2, dtype=torch.int64), torch.empty(0, dtype=torch.int64):
        with pytest.raises(RuntimeError, match="Expected a value of type 'int' for argument 'n'"):
            times(x, value)


def test_results_that_lie_in_arguments_are_refused():
    @custom("same")
    def same(x: Tensor) -> Tensor:
        return x

    @custom("twice")
    def twice(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x + 1
        return y, y

    for op in (same, twice):
        with pytest.raises(RuntimeError, match="must not also be an input to this custom operator"):
            op(torch.ones(2))

    @custom("number")
    def number(x: Tensor) -> Tensor:
        return 3  # type: ignore[return-value]

    with pytest.raises(RuntimeError, match="Unable to cast 3 to Tensor"):
        number(torch.ones(2))


def test_lists_and_several_results():
    @custom("pairs")
    def pairs(xs: list[Tensor], k: int) -> tuple[Tensor, list[Tensor]]:
        return xs[0] * k, [x + 1 for x in xs]

    pairs.register_autograd(
        lambda ctx, g, gs: ([g * ctx.k + gs[0], gs[1]], None),
        setup_context=lambda ctx, inputs, output: setattr(ctx, "k", inputs[1]),
    )
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    first, rest = pairs([a, b], 3)
    (first.sum() + rest[0].sum() * 2 + rest[1].sum() * 5).backward()
    assert a.grad.tolist() == [5.0, 5.0] and b.grad.tolist() == [5.0, 5.0]


def test_mutating_custom_ops():
    @custom("put", mutates_args={"x"})
    def put(x: Tensor, k: int) -> None:
        x.mul_(k)

    z = torch.ones(2)
    before = z._version
    assert put(z, 3) is None and z.tolist() == [3.0, 3.0] and z._version > before
    assert str(put._opoverload._schema) == "lib_test::put(Tensor(a0!) x, SymInt k) -> ()"
    with pytest.raises(RuntimeError, match="Cannot register autograd formula for non-functional operator"):
        put.register_autograd(lambda ctx, g: g)


def test_kernels_by_device():
    @custom("where", device_types="cpu")
    def where(x: Tensor) -> Tensor:
        return x + 1

    with pytest.raises(RuntimeError, match="There was no fake impl registered"):
        where(torch.ones(2, device="meta"))

    @where.register_fake
    def _(x):
        return torch.empty_like(x)

    assert where(torch.ones(2, device="meta")).shape == (2,)
    where.register_kernel("cpu")(lambda x: x + 2)
    assert where(torch.zeros(1)).item() == 2
    with where.set_kernel_enabled("cpu", False):
        assert where(torch.zeros(1)).item() == 1
    assert where(torch.zeros(1)).item() == 2


def test_kernels_run_on_the_device(device):
    @custom("on_device")
    def on_device(x: Tensor) -> Tensor:
        return x * 2 + 1

    on_device.register_autograd(lambda ctx, g: g * 2)
    x = torch.ones(3, device=device, requires_grad=True)
    y = on_device(x)
    y.sum().backward()
    assert y.device == x.device and y.tolist() == [3.0] * 3 and x.grad.tolist() == [2.0] * 3


def test_libraries(lib):
    assert lib.define("plus(Tensor x, Tensor y) -> Tensor") == "plus"
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(
        NotImplementedError, match="Could not run 'lib_test::plus' with arguments from the 'CPU' backend"
    ):
        torch.ops.lib_test.plus(x, x)
    lib.impl("plus", lambda a, b: a + b, "CPU")
    assert torch.ops.lib_test.plus(x, x).requires_grad
    with pytest.raises(RuntimeError, match="with the same name and overload name multiple times"):
        lib.define("plus(Tensor x) -> Tensor")
    with pytest.raises(RuntimeError, match="could not parse dispatch key: Foo"):
        lib.impl("plus", lambda a, b: a, "Foo")
    with pytest.raises(RuntimeError, match="unknown type specifier"):
        lib.define("bad(Tensor x, Foo y) -> Tensor")
    lib.impl("later", lambda x: x + 1, "CompositeImplicitAutograd")  # before its op is declared
    lib.define("later(Tensor x) -> Tensor")
    assert type(torch.ops.lib_test.later(x).grad_fn).__name__ == "AddBackward0"
    lib.define("plus.Scalar(Tensor x, Scalar y) -> Tensor")
    lib.impl("plus.Scalar", lambda a, b: a + 100 * b, "CPU")
    assert torch.ops.lib_test.plus(x, 1).tolist() == [101.0, 101.0]
    assert torch.ops.lib_test.plus.overloads() == ["default", "Scalar"]


def test_a_library_takes_its_ops_along():
    with torch.library._scoped_library("lib_gone", "DEF") as lib:
        lib.define("op(Tensor x) -> Tensor")
        assert torch.ops.lib_gone.op
        with pytest.raises(RuntimeError, match="Only a single TORCH_LIBRARY"):
            torch.library.Library("lib_gone", "DEF")
    with pytest.raises(AttributeError, match="'_OpNamespace' 'lib_gone' object has no attribute 'op'"):
        torch.ops.lib_gone.op
    torch.library.Library("lib_gone", "DEF")._destroy()
    with pytest.raises(ValueError, match="Unsupported kind: FOO"):
        torch.library.Library("a", "FOO")
    with pytest.raises(ValueError, match="prim is a reserved namespace"):
        torch.library.Library("prim", "DEF")


def test_a_result_without_history_warns_in_backward(lib):
    lib.define("cut(Tensor x) -> Tensor")
    lib.impl("cut", lambda x: x.detach() * 2, "CompositeExplicitAutograd")
    x = torch.ones(2, requires_grad=True)
    y = torch.ops.lib_test.cut(x)
    assert "WarnNotImplemented" in repr(y)
    with pytest.warns(UserWarning, match="an autograd kernel was not registered to the Autograd key"):
        y.sum().backward()
    assert x.grad is None
    torch.library.register_autograd("lib_test::cut", lambda ctx, g: g * 2, lib=lib)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.ops.lib_test.cut(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_an_autograd_kernel_runs_first(lib):
    lib.define("own(Tensor x) -> Tensor")
    lib.impl("own", lambda x: x + 1, "CPU")
    lib.impl("own", lambda x: x * 5, "Autograd")
    assert torch.ops.lib_test.own(torch.ones(1)).item() == 5


def test_autocast_of_an_op():
    @custom("half")
    def half(x: Tensor) -> Tensor:
        return x.clone()

    torch.library.register_autocast("lib_test::half", "cpu", torch.bfloat16)
    assert half(torch.ones(1)).dtype == torch.float32
    with torch.autocast("cpu"):
        assert half(torch.ones(1)).dtype == torch.bfloat16


def test_modes_see_one_op():
    @custom("seen")
    def seen(x: Tensor) -> Tensor:
        return x + 1

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            names.append(str(func))
            return func(*args, **(kwargs or {}))

    names: list[str] = []
    with Mode():
        seen(torch.ones(1))
    assert names[-1] == "lib_test.seen.default" and len(names) == 2


def test_vmap_of_an_op():
    @custom("plus")
    def plus(x: Tensor, y: Tensor) -> Tensor:
        assert x.ndim == 1
        return x + y

    x, y = torch.arange(6.0).reshape(2, 3), torch.ones(3)
    assert torch.equal(torch.vmap(plus, in_dims=(0, None))(x, y), x + 1)  # an example at a time
    asked = []

    @plus.register_vmap
    def _(info, in_dims, x, y):
        asked.append((info.batch_size, info.randomness, in_dims))
        return x + y * 100, 0

    assert torch.equal(torch.vmap(plus, in_dims=(0, None))(x, y), x + 100)
    assert asked == [(2, "error", (0, None))]


SCHEMAS = {
    '(Tensor(a0!) x, Tensor? y, SymInt[] z, Tensor[] w, bool k=True, *, ScalarType? dt=None, str s="a", Scalar n=1)'
    " -> (Tensor, Tensor[], SymInt)": ("x",)
}


def test_schemas_of_functions():
    def f(
        x: Tensor,
        y: Tensor | None,
        z: list[int],
        w: list[Tensor],
        k: bool = True,
        *,
        dt: torch.dtype | None = None,
        s: str = "a",
        n: int | float | bool = 1,
    ) -> tuple[Tensor, list[Tensor], int]: ...

    for text, mutated in SCHEMAS.items():
        assert torch.library.infer_schema(f, mutates_args=mutated) == text

    def untyped(x): ...

    def no_result(x: Tensor): ...

    def odd(x: dict) -> None: ...

    for function, words in (
        (untyped, "Parameter x must have a type annotation"),
        (no_result, "No return type annotation was provided"),
        (odd, "Parameter x has unsupported type"),
    ):
        with pytest.raises(ValueError, match=words):
            torch.library.infer_schema(function, mutates_args=())
    with pytest.raises(ValueError, match=r"\{'q'\} in mutates_args were not found"):
        torch.library.infer_schema(f, mutates_args=("q",))


def test_opcheck():
    @custom("checked")
    def checked(x: Tensor) -> Tensor:
        return x * 2

    x = (torch.ones(3, requires_grad=True),)
    with pytest.raises(torch.library.OpCheckError, match="test_faketensor failed with There was no fake impl"):
        torch.library.opcheck(checked, (torch.ones(3),))
    checked.register_autograd(lambda ctx, g: g * 2)
    checked.register_fake(lambda x: x.new_empty(x.shape[0] + 1))
    with pytest.raises(torch.library.OpCheckError, match="shape mismatch"):
        torch.library.opcheck(checked, x)
    checked.register_fake(torch.empty_like)
    assert set(torch.library.opcheck(checked, x).values()) == {"SUCCESS"}
    with pytest.raises(ValueError, match="expected test_utils to be subset of"):
        torch.library.opcheck(checked, x, test_utils="test_x")

    @custom("writes")
    def writes(x: Tensor) -> Tensor:
        return x.mul_(2) + 1

    with pytest.raises(torch.library.OpCheckError, match="not defined as mutable but was mutated"):
        torch.library.opcheck(writes, (torch.ones(3),), test_utils="test_schema")


def test_names_of_ops():
    with pytest.raises(OSError, match="Could not load this library"):
        torch.ops.load_library("nothing.so")
    with pytest.raises(RuntimeError, match="operator lib_test::nope does not exist"):
        torch.library.register_vmap("lib_test::nope", lambda x: x)
    with pytest.raises(ValueError, match="Expected `qualname` to be of the form"):
        torch.library.define("nope", "(Tensor x) -> Tensor")
    for refused in (torch.library.triton_op, torch.library.wrap_triton):
        with pytest.raises(NotImplementedError, match="torchlite runs no Triton kernels"):
            refused("lib::x", mutates_args=()) if refused is torch.library.triton_op else refused(print)
    with pytest.raises(NotImplementedError, match="adds none to the library aten"):
        torch.library.Library("aten", "FRAGMENT").define("new(Tensor x) -> Tensor")
    overload = torch.ops.aten.add.Tensor
    assert pickle.loads(pickle.dumps(overload)) is overload and copy.deepcopy(overload) is overload


def test_tags_of_ops():
    aten, Tag = torch.ops.aten, torch.Tag
    for overload, held in (
        (aten.add.Tensor, "core pointwise pt2_compliant_tag"),
        (aten.add_.Tensor, "inplace pointwise pt2_compliant_tag"),
        (aten.mm.default, "core pt2_compliant_tag"),
        (aten.sum.dim_IntList, "core pt2_compliant_tag reduction"),
        (aten.nonzero.default, "core dynamic_output_shape pt2_compliant_tag"),
        (aten.t_.default, "inplace inplace_view pt2_compliant_tag"),
        (aten.bernoulli.p, "nondeterministic_seeded pt2_compliant_tag"),
    ):
        assert [tag.name for tag in overload.tags] == held.split()
    assert repr(Tag.pt2_compliant_tag) == "<Tag.pt2_compliant_tag: 17>" and torch._C.Tag is Tag

    @torch.library.custom_op("lib_test::tagged", mutates_args=(), tags=Tag.core)
    def tagged(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    assert tagged._opoverload.tags == [Tag.pt2_compliant_tag, Tag.core]
    with torch.library._scoped_library("lib_tags", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor", tags=(Tag.needs_fixed_stride_order,))
        assert torch.ops.lib_tags.f.default.tags == [Tag.needs_fixed_stride_order]


def test_a_kernel_is_put_in_place_of_another_and_back():
    with torch.library._scoped_library("lib_over", "DEF") as lib:
        lib.define("f(Tensor x) -> Tensor")
        lib.impl("f", lambda x: x + 1, "CPU")
        with torch.library._scoped_library("lib_over", "IMPL") as other:
            other.impl("f", lambda x: x + 2, "CPU")
            assert torch.ops.lib_over.f(torch.zeros(1)).item() == 2
            with pytest.raises(RuntimeError, match="already a kernel registered from python overriding f's behavior"):
                other.impl("f", lambda x: x, "CPU", allow_override=False)
        assert torch.ops.lib_over.f(torch.zeros(1)).item() == 1


def test_schemas_of_the_library_name_ops_and_types():
    schema = torch.ops.aten.add.Tensor._schema
    assert str(schema) == "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor"
    assert str(torch.ops.aten.transpose.int._schema) == (
        "aten::transpose.int(Tensor(a) self, int dim0, int dim1) -> Tensor(a)"
    )


def test_classes_of_ops_have_their_names():
    from torchlite._ops import OpOverload, OpOverloadPacket

    assert isinstance(torch.ops.aten.add.Tensor, OpOverload) and isinstance(torch.ops.aten.add, OpOverloadPacket)


def test_opcheck_requires_a_meta_rule_for_compilers():
    @torch.library.custom_op("lib_test::no_fake", mutates_args=())
    def no_fake(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    answers = torch.library.opcheck(no_fake, (torch.ones(2),), raise_exception=False)
    assert [name for name, answer in answers.items() if answer != "SUCCESS"] == [
        "test_faketensor", "test_aot_dispatch_dynamic",
    ]  # fmt: skip


def test_rules_get_keywords_and_leave_defaults_out():
    with torch.library._scoped_library("defaults_tests", "FRAGMENT") as lib:
        lib.define("scale(Tensor w, int x=2, *, int y=3, int z) -> Tensor")
        lib.impl("scale", lambda w, x=2, *, y=3, z: w * x * y * z, "CPU")
        op = torch.ops.defaults_tests.scale
        assert torch.equal(torch.vmap(op)(torch.ones(3), z=7), torch.full((3,), 42.0))

        def setup(ctx, inputs, keyword_only_inputs, output):
            assert inputs[1] == 2 and keyword_only_inputs == {"y": 3, "z": 7}

        torch.library.register_autograd(
            "defaults_tests::scale", lambda ctx, grad: grad * 42, setup_context=setup, lib=lib
        )
        w = torch.ones(3, requires_grad=True)
        op(w, z=7).sum().backward()
        assert torch.equal(w.grad, torch.full((3,), 42.0))
        seen = []

        def rule(info, in_dims, w, x=2, *, y=3, z):
            seen.append(in_dims)
            return w * x * y * z, 0

        torch.library.register_vmap("defaults_tests::scale", rule, lib=lib)
        assert torch.equal(torch.vmap(op)(torch.ones(3), z=7), torch.full((3,), 42.0)) and seen == [(0,)]


def test_ops_of_the_older_functions():
    ops = torch._custom_ops

    @ops.custom_op("older::scaled")
    def scaled(xs: Sequence[torch.Tensor], by: float) -> tuple[torch.Tensor, torch.Tensor]: ...

    @ops.impl("older::scaled", device_types="cpu")
    def _(xs, by):
        return xs[0] * by, xs[1] + by

    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="Autograd has not been implemented"):
        torch.ops.older.scaled([x, y], 3.0)

    @ops.impl_save_for_backward("older::scaled")
    def _(inputs, output):
        return {"by": inputs.by, "x": inputs.xs[0]}

    with pytest.raises(RuntimeError, match="unable to find a 'backward' registration"):
        torch.ops.older.scaled([x, y], 3.0)
    answers = [lambda saved, g, h: {"xs": [g * saved["by"] * saved["x"], h]}]
    ops.impl_backward("older::scaled", func=lambda ctx, saved, *grads: answers[-1](saved, *grads))
    first, second = torch.ops.older.scaled([x, y], 3.0)
    (first.sum() + second.sum()).backward()
    assert x.grad.tolist() == [3.0, 3.0] and y.grad.tolist() == [1.0, 1.0]
    for wrong, words in ((lambda *a: 1, "to be a dict"), (lambda *a: {}, "to have keys"), (lambda *a: {"xs": []}, "2")):
        answers.append(wrong)
        with pytest.raises(RuntimeError, match=words):
            torch.ops.older.scaled([x, y], 3.0)[0].sum().backward()
    with pytest.raises(RuntimeError, match="already has an implementation"):
        ops.impl("older::scaled", device_types="cpu", func=print)
    ops._destroy("older::scaled")
    with pytest.raises(ValueError, match="non-functional"):
        ops.custom_op("older::wrong", "(Tensor(a!) x) -> Tensor(a!)")
    with pytest.raises(AssertionError, match="Invalid function schema"):
        ops.custom_op("older::wrong", "(")


def test_an_op_without_tensors_runs_on_the_device_of_its_argument():
    @torch.library.custom_op("factory::some", mutates_args=(), device_types="cpu")
    def some(device: torch.device, size: Sequence[int]) -> torch.Tensor:
        return torch.ones(size, device=device)

    some.register_fake(lambda device, size: torch.empty(size, device=device))
    assert some("cpu", range(2, 4)).shape == (2, 3)
    assert some(torch.device("meta"), (2,)).is_meta


def test_a_mode_may_leave_calls_to_subclasses():
    class Named(torch.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
            return func.__name__

    class Polite(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            return NotImplemented if types else func(*args, **(kwargs or {}))

    with Polite():
        assert torch.ops.aten.abs.default(torch.ones(1).as_subclass(Named)) == "abs.default"
        assert torch.abs(-torch.ones(1)) == 1


def test_kernels_wait_for_their_op(device):
    @torch.library.impl("late_lib::twice", ["cpu", "opencl", "cuda"])
    def twice(x):
        return x * 2

    torch.library.define("late_lib::twice", "(Tensor x) -> Tensor")
    torch.library.impl("late_lib::twice", "default", lambda x: x * 3)
    assert torch.ops.late_lib.twice(torch.ones(2, device=device)).tolist() == [2.0, 2.0]
    with pytest.raises(ValueError, match="namespace::name"):
        torch.library.impl("late", "cpu", twice)


def test_schema_that_returns_none():
    schema = torch._C.parse_schema("a::b(Tensor x) -> None")
    assert str(schema) == "a::b(Tensor x) -> NoneType" and str(schema.returns[0].type) == "NoneType"
    library = torch.library.Library("returns_none_test", "DEF")
    assert library.define("run(Tensor x) -> None") == "run"
    library.impl("run", lambda x: None, "CompositeExplicitAutograd")
    assert torch.ops.returns_none_test.run(torch.ones(2)) is None


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("f(Tensor! out, Tensor x) -> ()", "f(Tensor($0! -> ) out, Tensor x) -> ()"),
        ("f(Tensor !out) -> ()", "f(Tensor($0! -> ) out) -> ()"),
        (
            "f(Tensor![] out, Tensor!? o=None, *, Tensor! z) -> Tensor!",
            "f(Tensor($0! -> )[] out, Tensor($1! -> )? o=None, *, Tensor($2! -> ) z) -> Tensor($3! -> )",
        ),
        ("f(Tensor[]! o) -> ()", "f(Tensor[]($0! -> ) o) -> ()"),
        ("f(Tensor(a!) x, Tensor! y) -> Tensor(a!)", "f(Tensor(a!) x, Tensor($0! -> ) y) -> Tensor(a!)"),
    ],
)
def test_a_write_without_a_name_has_an_alias_set_of_its_own(text, shown):
    schema = torch._C.parse_schema(f"a::{text}")
    assert str(schema) == f"a::{shown}" and schema.is_mutable
    written = [part.alias_info for part in schema.arguments if part.alias_info]
    assert all(info.is_write and len(info.before_set) == 1 for info in written)


@pytest.mark.parametrize("text", ["Tensor?! o", "Tensor(a)! o", "Tensor!! o", "! o"])
def test_a_write_in_another_place_is_refused(text):
    with pytest.raises(RuntimeError, match="cannot read"):
        torch._C.parse_schema(f"a::f({text}) -> ()")


def test_an_op_that_writes_to_an_argument_without_an_alias_name(lib):
    lib.define("fill(Tensor! out, Tensor x) -> ()")
    lib.impl("fill", lambda out, x: out.copy_(x) and None, "CompositeExplicitAutograd")
    out = torch.zeros(1)
    assert getattr(torch.ops, lib.ns).fill(out, torch.ones(1)) is None
    assert out.item() == 1 and out._version == 1


def test_a_default_kernel_serves_all_devices(lib, device):
    lib.define("doubled(Tensor x) -> Tensor")
    torch.library.register_kernel(f"{lib.ns}::doubled", "default", lambda x: 2 * x, lib=lib)
    assert getattr(torch.ops, lib.ns).doubled(torch.ones(1, device=device)).item() == 2


@pytest.mark.parametrize(
    ("kind", "given", "received"),
    [
        ("float", np.float32(1.5), 1.5), ("float", np.int64(3), 3.0), ("float", True, 1.0), ("float", np.array(2), 2.0),
        ("float?", np.float32(1.5), 1.5), ("float?", torch.tensor(2), 2.0), ("float?", None, None),
        ("int", np.int32(3), 3), ("int", np.float32(1.5), 1), ("int", np.True_, 1), ("int?", np.int64(4), 4),
        ("bool", 1.5, True), ("bool", np.float64(0), False), ("bool", torch.tensor(2.0), True),
        ("int[]", [np.int64(1), 2], [1, 2]), ("int[]", np.array([1, 2]), [1, 2]), ("float[]", np.array([1, 2]), [1, 2]),
    ],
)  # fmt: skip
def test_numbers_of_numpy_and_of_tensors_are_converted(lib, kind, given, received):
    seen = []
    lib.define(f"take(Tensor x, {kind} y) -> Tensor")
    lib.impl("take", lambda x, y: seen.append(y) or x.clone(), "CompositeExplicitAutograd")
    torch.ops.lib_test.take(torch.ones(1), given)
    assert seen == [received]
    for one, wanted in zip(
        *((part if isinstance(part, list) else [part]) for part in (seen[0], received)), strict=True
    ):
        assert type(one) is (float if kind == "float[]" else type(wanted))


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("int", 1.5),
        ("int", np.float64(1.5)),
        ("float", "s"),
        ("float", 1j),
        ("float", np.complex64(1)),
        ("Scalar", np.float32(1)),
    ],
)
def test_other_numbers_are_refused(lib, kind, given):
    lib.define(f"take(Tensor x, {kind} y) -> Tensor")
    with pytest.raises(RuntimeError, match="Expected a value of type"):
        torch.ops.lib_test.take(torch.ones(1), given)
