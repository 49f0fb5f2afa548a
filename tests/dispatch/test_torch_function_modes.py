"""`TorchFunctionMode` and `__torch_function__` see calls as programs write them."""

import pytest

import torchlite as torch
from torchlite.overrides import TorchFunctionMode


class Calls(TorchFunctionMode):
    def __init__(self):
        self.seen = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.seen.append((func, len(args), kwargs or {}))
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "call, func, count, keywords",
    [
        (lambda x: x + 1, torch.Tensor.add, 2, {}),
        (lambda x: 1 - x, torch.Tensor.__rsub__, 2, {}),
        (lambda x: x.add(1, alpha=2), torch.Tensor.add, 2, {"alpha": 2}),
        (lambda x: x.add_(1), torch.Tensor.add_, 2, {}),
        (lambda x: -x, torch.Tensor.neg, 1, {}),
        (lambda x: x.sum(), torch.Tensor.sum, 1, {}),
        (lambda x: x.sum(0), torch.Tensor.sum, 2, {}),
        (lambda x: x.std(), torch.Tensor.std, 1, {}),
        (lambda x: x.max(0), torch.Tensor.max, 2, {}),
        (lambda x: x[0:1], torch.Tensor.__getitem__, 2, {}),
        (lambda x: x.to(torch.float64), torch.Tensor.to, 2, {}),
        (lambda x: torch.ones(2), torch.ones, 1, {"device": None}),
        (lambda x: torch.tensor([1.0]), torch.tensor, 1, {}),
        (lambda x: torch.as_tensor([1.0], dtype=torch.float64), torch.as_tensor, 1, {"dtype": torch.float64}),
        (lambda x: torch.asarray([1.0]), torch.asarray, 1, {}),
        (lambda x: torch.softmax(x, 0), torch.softmax, 2, {}),
    ],
)
def test_a_mode_sees_the_public_function_and_its_arguments(call, func, count, keywords):
    x = torch.ones(2, 2)
    with Calls() as mode:
        result = call(x)
    seen, n, kwargs = mode.seen[0]
    assert seen == func and n == count
    assert {name: value for name, value in kwargs.items() if value is not None} == {
        name: value for name, value in keywords.items() if value is not None
    }
    assert result is not None


# A line of a program, and the method of Tensor with its arguments that PyTorch passes to a mode.
OPERATORS = """
    x+y -> add(x, y)
    x-y -> sub(x, y)
    x*y -> mul(x, y)
    x/y -> div(x, y)
    x//y -> __floordiv__(x, y)
    x%y -> remainder(x, y)
    x**y -> __pow__(x, y)
    x@y -> matmul(x, y)
    x==y -> __eq__(x, y)
    x!=y -> ne(x, y)
    x<y -> lt(x, y)
    x<=y -> le(x, y)
    x>y -> gt(x, y)
    x>=y -> ge(x, y)
    x+2 -> add(x, 2)
    x*2.5 -> mul(x, 2.5)
    2+x -> add(x, 2)
    2-x -> __rsub__(x, 2)
    2*x -> mul(x, 2)
    2/x -> __rtruediv__(x, 2)
    2//x -> __rfloordiv__(x, 2)
    2%x -> __rmod__(x, 2)
    2**x -> __rpow__(x, 2)
    2==x -> __eq__(x, 2)
    2<x -> gt(x, 2)
    i&j -> __and__(i, j)
    i|j -> __or__(i, j)
    i^j -> __xor__(i, j)
    i<<j -> __lshift__(i, j)
    i>>j -> __rshift__(i, j)
    1&i -> bitwise_and(i, 1)
    1|i -> bitwise_or(i, 1)
    1^i -> bitwise_xor(i, 1)
    1<<i -> __rlshift__(i, 1)
    1>>i -> __rrshift__(i, 1)
    -x -> neg(x)
    +x -> positive(x)
    abs(x) -> abs(x)
    ~i -> __invert__(i)
    x+i -> add(x, i)
    i/j -> div(i, j)
    x.add(y) -> add(x, y)
    x += y -> add_(x, y)
    x -= y -> sub_(x, y)
    x *= 2 -> mul_(x, 2)
    x /= y -> div_(x, y)
    x //= y -> floor_divide_(x, y)
    x %= y -> remainder_(x, y)
    x **= y -> __ipow__(x, y)
    i &= j -> __iand__(i, j)
    i |= 1 -> __ior__(i, 1)
    i ^= j -> __ixor__(i, j)
    i <<= j -> __ilshift__(i, j)
    i >>= 1 -> __irshift__(i, 1)
"""


@pytest.mark.parametrize("line", OPERATORS.strip().splitlines(), ids=str.strip)
def test_a_mode_sees_operators_as_methods_of_tensor(line):
    program, _, call = (part.strip() for part in line.partition(" -> "))
    method, _, names = call.rstrip(")").partition("(")
    values = {"x": [5.0, 3.0], "y": [2.0, 4.0], "i": [5, 3], "j": [2, 1]}
    space = {name: torch.tensor(value) for name, value in values.items()}
    want = [
        space.get(name) if name in space else float(name) if "." in name else int(name) for name in names.split(", ")
    ]
    kept = []

    class Kept(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kept.append((func, args, kwargs))
            return func(*args, **(kwargs or {}))

    with Kept():
        exec(program, space)
    ((func, args, kwargs),) = kept
    assert func is getattr(torch.Tensor, method) and not kwargs
    assert len(args) == len(want) and all(
        a is b or not isinstance(b, torch.Tensor) and a == b for a, b in zip(args, want, strict=True)
    )


def test_each_name_of_a_method_is_itself_in_a_mode():
    x = torch.ones(2)
    for name in ("negative", "neg", "subtract", "sub", "absolute", "abs", "multiply", "mul"):
        with Calls() as mode:
            getattr(x, name)(*[x] * (name[0] in "sm"))
        assert mode.seen[0][0] is getattr(torch.Tensor, name) and mode.seen[0][0].__name__ == name


def test_a_mode_that_gives_factories_a_device():
    class OnMeta(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            kwargs = dict(kwargs or {})
            if func in (torch.ones, torch.tensor, torch.randn, torch.as_tensor) and kwargs.get("device") is None:
                kwargs["device"] = "meta"
            return func(*args, **kwargs)

    with OnMeta():
        made = [torch.ones(2), torch.tensor([1.0]), torch.randn(3), torch.as_tensor([2.0])]
    assert [t.device.type for t in made] == ["meta"] * 4


def test_nested_modes_see_functions_that_are_no_op_from_inside_out():
    with Calls() as outer, Calls() as inner:
        torch.tensor(1.0)
    assert len(inner.seen) == len(outer.seen) == 1


def test_all_of_it_can_be_left_out():
    with Calls() as mode, torch._C.DisableTorchFunction():
        torch.ones(2) + 1
        torch.tensor(1)
    assert mode.seen == []
    with Calls() as mode, torch._C.DisableTorchFunctionSubclass():
        torch.ones(2) + 1
    assert len(mode.seen) == 2


class Sub(torch.Tensor):
    pass


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.detach(),
        lambda x: x.data,
        lambda x: x.cpu().data,
        lambda x: x.max(0)[0],
        lambda x: x.sort().values,
        lambda x: torch.linalg.svd(x).S,
        lambda x: x.topk(1).indices,
    ],
)
def test_results_of_a_subclass_have_it(call):
    assert type(call(torch.ones(2, 2).as_subclass(Sub))) is Sub
    assert type(torch.Tensor(torch.ones(2).as_subclass(Sub))) is torch.Tensor


def test_detach_calls_torch_function():
    class Named(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            names.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    names: list = []
    x = torch.ones(2).as_subclass(Named)
    x.detach()
    assert names[-1] == "detach"


def test_operators_ask_objects_that_are_no_tensors():
    class Answering:
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func.__name__, len(args)

    x = torch.ones(1)
    assert x + Answering() == ("add", 2) and x @ Answering() == ("matmul", 2) and torch.sub(x, Answering())[1] == 2
    with pytest.raises(TypeError, match="unsupported operand"):
        x + object()


def test_resolve_name():
    resolve = torch.overrides.resolve_name
    assert resolve(torch.ones) == "torch.ones" and resolve(torch.tensor) == "torch.tensor"
    assert resolve(torch.nn.functional.dropout) == "torch.nn.functional.dropout"


class _Refusing(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return NotImplemented


class _Refused(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return NotImplemented


def _twice(x):
    if torch.overrides.has_torch_function((x,)):
        return torch.overrides.handle_torch_function(_twice, (x,), x)
    return 2 * x


def test_classes_are_asked_after_a_mode_that_refuses():
    class Answering(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return 7

    x, y = torch.ones(2).as_subclass(Answering), torch.ones(2).as_subclass(_Refused)
    with _Refusing() as mode:
        assert [torch.mm(x, x), torch.nn.functional.relu(x), x + 1, _twice(x)] == [7] * 4
        for call, name in ((torch.max, "torch.max"), (_twice, "_twice")):
            with pytest.raises(TypeError, match=f"^Multiple dispatch failed for '.*{name}'") as error:
                call(y)
            assert f"  - mode object {mode}\n  - tensor subclass {_Refused}\n" in str(error.value)
        with pytest.raises(TypeError, match="mode object"):
            torch.ones(2)


def test_a_refusing_mode_is_asked_again_without_the_class():
    class Plain(torch.Tensor):
        pass

    seen = []

    class Picky(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(types)
            return NotImplemented if Plain in types else func(*args, **(kwargs or {}))

    x = torch.ones(2).as_subclass(Plain)
    with Picky():
        assert type(torch.neg(x)) is Plain
    assert len(seen) == 2 and Plain not in seen[1]


def test_the_method_of_a_mode_is_no_classmethod():
    class Wrong(TorchFunctionMode):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            return func(*args, **(kwargs or {}))

    with pytest.raises(RuntimeError, match="classmethod is not supported, please make it a plain method"):
        with Wrong():
            torch.ones(2)
