"""Custom ops: declared by a schema, with a kernel for each device, a derivative, and a rule for the meta device.

They are called as `torch.ops.<library>.<op>`. Interceptors, subclasses and autograd treat each as one op.
"""

from __future__ import annotations

import contextlib
import functools
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from torchlite._settings.module_dir import make_module_dir

from ._aten import ops as _ops
from ._aten.kernel_overrides import check_key, find_overriding_kernels, set_overrides_active
from ._library import library_op
from ._library.custom_ops import CustomOpDef, custom_op
from ._library.custom_ops import reject_keyword_only_tensors as _no_keyword_tensors
from ._library.function_schema import infer_schema
from ._library.op_lookup import find_custom_op_def as _definition_of
from ._library.op_lookup import resolve_op as _op_of
from ._library.opcheck_tests import OpCheckError, opcheck
from ._types.devices import device

__all__ = [
    "CustomOpDef", "Library", "OpCheckError", "custom_op", "define", "fallthrough_kernel", "get_ctx", "get_kernel",
    "impl", "impl_abstract", "infer_schema", "opcheck", "register_autocast", "register_autograd", "register_fake",
    "register_kernel", "register_torch_dispatch", "register_vmap", "triton_op", "wrap_triton",
]  # fmt: skip

_RESERVED = ("prim",)
_DEFINING: dict[str, object] = {"aten": None}  # namespaces, each with a mark of who defined it


def fallthrough_kernel(*args: Any, **kwargs: Any) -> Any:
    """Stands as a kernel for "none here, take the next key"; a call of it is an error.

    Args:
        *args: No effect.
        **kwargs: No effect.

    Raises:
        NotImplementedError: It is called.

    Example:
        >>> lib = torch.library.Library("docs_fallthrough", "DEF")
        >>> _ = lib.define("same(Tensor x) -> Tensor")
        >>> lib.impl("same", torch.library.fallthrough_kernel, "CPU")
    """
    raise NotImplementedError("fallthrough_kernel() should never be called.")


def _check_alias_analysis(kind: str) -> None:
    if kind not in ("", "FROM_SCHEMA", "CONSERVATIVE"):
        raise RuntimeError(f"Invalid alias_analysis type {kind}")


class Library:
    """A library of ops; what is added with the object goes when the object does.

    Args:
        ns: Name of the library.
        kind: ``"DEF"`` makes the library, ``"FRAGMENT"`` adds ops to it, ``"IMPL"`` adds kernels only.
        dispatch_key: Key of kernels for which `impl` gets none. Default: none.

    Raises:
        ValueError: The kind is unknown, or the name is reserved.
        RuntimeError: The library exists, and the kind is ``"DEF"``.

    Example:
        >>> import torchlite as torch
        >>> lib = torch.library.Library("docs_lib", "DEF")
        >>> lib.define("plus(Tensor x, Tensor y) -> Tensor")
        'plus'
        >>> lib.impl("plus", lambda x, y: x + y, "CPU")
        >>> torch.ops.docs_lib.plus(torch.ones(2), torch.ones(2))
        tensor([2., 2.])
    """

    def __init__(self, ns: str, kind: str, dispatch_key: str = "") -> None:
        if kind not in ("IMPL", "DEF", "FRAGMENT"):
            raise ValueError(f"Unsupported kind: {kind}")
        if ns in _RESERVED and kind != "IMPL":
            raise ValueError(f"{ns} is a reserved namespace. Please try creating a library with another name.")
        if kind == "DEF":
            mark = object()
            if _DEFINING.setdefault(ns, mark) is not mark:  # of two threads one is first
                raise RuntimeError(
                    f"Only a single TORCH_LIBRARY can be used to register the namespace {ns}; please put all of your "
                    "definitions in a single TORCH_LIBRARY block.  If you were trying to specify implementations, "
                    "consider using TORCH_LIBRARY_IMPL (which can be duplicated).  If you really intended to define "
                    "operators for a single namespace in a distributed way, you can use TORCH_LIBRARY_FRAGMENT to "
                    "explicitly indicate this."
                )
        self.ns, self.kind, self.dispatch_key = ns, kind, dispatch_key
        self._undo: list[Callable] = []
        self._finalizer = weakref.finalize(self, _undo_registration, self._undo, ns if kind == "DEF" else None)
        self._finalizer.atexit = False

    def __repr__(self) -> str:
        return f"Library(kind={self.kind}, ns={self.ns}, dispatch_key={self.dispatch_key})>"

    def define(self, schema: str, alias_analysis: str = "", *, tags: Any = ()) -> str:
        """Adds an op by its schema.

        Args:
            schema: Text such as ``"op(Tensor x, float s=2.0) -> Tensor"``.
            alias_analysis: ``""``, ``"FROM_SCHEMA"`` or ``"CONSERVATIVE"``; no effect.
            tags: Tags of the op. Default: none.

        Returns:
            Name of the op.

        Raises:
            RuntimeError: The schema cannot be read, the op exists, or the library is of the kind ``"IMPL"``.
        """
        _check_alias_analysis(alias_analysis)
        if self.kind == "IMPL":
            raise RuntimeError(f"cannot define {schema!r} in a Library of kind IMPL")
        if self.ns == "aten":
            raise NotImplementedError("torchlite has PyTorch's ops as records, and adds none to the library aten")
        op = library_op.define_op(self.ns, schema, tags)
        self._undo.append(functools.partial(library_op.undefine_op, op))
        return schema.partition("(")[0].strip()

    def _kernels_of_op(self, op_name: Any) -> Any:
        """The kernels of an op, by key; they wait where the op is not declared yet."""
        own = self.ns == "aten" if isinstance(op_name, str) else getattr(op_name, "namespace", "") == "aten"
        if own:
            return find_overriding_kernels(op_name if isinstance(op_name, str) else op_name.name())
        if not isinstance(op_name, str):
            return _op_of(op_name).kernels
        name = op_name if "::" in op_name else f"{self.ns}::{op_name}"
        try:
            return library_op.find_op(name).kernels
        except RuntimeError:
            return library_op.PENDING.setdefault(name, {})

    def impl(
        self,
        op_name: Any,
        fn: Callable,
        dispatch_key: str = "",
        *,
        with_keyset: bool = False,
        allow_override: bool = True,
    ) -> None:
        """Adds a kernel of an op.

        A kernel of one of PyTorch's own ops, in a library "aten", is called in its place by the thread that adds it.
        Every op is slower while there is one.

        Args:
            op_name: Name of the op, or an op of `torch.ops`.
            fn: The kernel, or `fallthrough_kernel`.
            dispatch_key: ``"CPU"``, ``"CUDA"``, ``"OpenCL"``, ``"Meta"``, ``"CompositeExplicitAutograd"`` (any device),
                ``"CompositeImplicitAutograd"`` (any device, differentiated through) or ``"Autograd"``. Default: that of
                the library, or ``"CompositeImplicitAutograd"``.
            with_keyset: Whether the kernel gets ``None`` as an additional first argument. Default: ``False``.
            allow_override: Whether the kernel may replace another one. Default: ``True``.

        Raises:
            TypeError: ``fn`` is not callable.
            RuntimeError: The key is unknown, or there is a kernel and ``allow_override=False``.

        Example:
            >>> import torchlite as torch
            >>> lib = torch.library.Library("aten", "IMPL")
            >>> lib.impl("neg", lambda x: x + 100, "CPU")
            >>> -torch.ones(2)
            tensor([101., 101.])
            >>> lib._destroy()
            >>> -torch.ones(2)
            tensor([-1., -1.])
        """
        key = str(getattr(dispatch_key, "name", dispatch_key)) or self.dispatch_key or "CompositeImplicitAutograd"
        if not callable(fn):
            raise TypeError(f"Input function is required to be a callable but found type {type(fn)}")
        if key not in library_op.KEYS:
            raise RuntimeError(f"could not parse dispatch key: {key}")
        kernels = self._kernels_of_op(op_name)
        if self.ns == "aten":
            check_key(key)
            self._undo.append(set_overrides_active)
        if fn is fallthrough_kernel:
            kernels.pop(key, None)
            return
        before = kernels.get(key)
        if before is not None and not allow_override:
            name = getattr(op_name, "__name__", str(op_name)).rpartition("::")[2]
            raise RuntimeError(
                "This is not allowed since there's already a kernel registered from python overriding "
                f"{name}'s behavior for {key} dispatch key and {self.ns} namespace."
            )
        kernel = kernels[key] = functools.partial(fn, None) if with_keyset else fn
        self._undo.append(functools.partial(_remove_kernel, kernels, key, kernel, before))
        if self.ns == "aten":
            set_overrides_active()

    def fallback(self, fn: Callable, dispatch_key: str = "", *, with_keyset: bool = False) -> None:
        """Raises NotImplementedError: there are no kernels for all ops of a key. Use a TorchDispatchMode.

        Args:
            fn: No effect.
            dispatch_key: No effect.
            with_keyset: No effect.

        Raises:
            NotImplementedError: Always.
        """
        raise NotImplementedError("torchlite has no fallback for all ops of a key; use a TorchDispatchMode")

    def _destroy(self) -> None:
        """Take away what was added."""
        self._finalizer()


def _remove_kernel(kernels: dict[str, Callable], key: str, kernel: Callable, before: Callable | None) -> None:
    """Take a kernel away, unless another one has its place by now."""
    if kernels.get(key) is kernel:
        kernels.pop(key)
        if before is not None:
            kernels[key] = before


def _undo_registration(undo: list[Callable], name: str | None) -> None:
    while undo:
        undo.pop()()
    if name is not None:
        _DEFINING.pop(name, None)


@contextlib.contextmanager
def _scoped_library(*args: Any, **kwargs: Any) -> Iterator[Library]:
    """A library for a block."""
    lib = Library(*args, **kwargs)
    try:
        yield lib
    finally:
        lib._destroy()


# Libraries of the functions below, when they are given none: they stay.
_FRAGMENTS: list[Library] = []


def _library_or_new_fragment(namespace: str, lib: Library | None) -> Library:
    if lib is None:
        lib = Library(namespace, "FRAGMENT")
        _FRAGMENTS.append(lib)
    return lib


def define(qualname: Any, schema: str, alias_analysis: str = "", *, lib: Library | None = None, tags: Any = ()) -> Any:
    """Adds an op by its name and schema.

    Args:
        qualname: ``"library::op"``. In the older form a `Library`, which returns a decorator.
        schema: Arguments and results, such as ``"(Tensor x) -> Tensor"``.
        alias_analysis: No effect.
        lib: The `Library` with which the op goes. Default: the op stays.
        tags: Tags of the op. Default: none.

    Raises:
        ValueError: The name has no library, or the schema has another form.

    Example:
        >>> import torchlite as torch
        >>> torch.library.define("docs_define::plus_one", "(Tensor x) -> Tensor")
        >>> @torch.library.impl("docs_define::plus_one", "default")
        ... def plus_one(x):
        ...     return x + 1
        >>> torch.ops.docs_define.plus_one(torch.zeros(2))
        tensor([1., 1.])
    """
    _check_alias_analysis(alias_analysis)
    if isinstance(qualname, Library):  # the older form: a decorator

        def wrap(function: Callable) -> Callable:
            name = qualname.define(str(schema), tags=tags)
            qualname.impl(name, function)
            return function

        return wrap
    if not isinstance(qualname, str):
        raise ValueError(f"define(qualname, schema): expected qualname to be instance of str, got {type(qualname)}")
    namespace, name = library_op.split_qualname(qualname)
    if not str(schema).lstrip().startswith("("):
        raise ValueError(
            'define(qualname, schema, ...): expected schema to look like e.g. "(Tensor x) -> Tensor" but got '
            f'"{schema}"'
        )
    _library_or_new_fragment(namespace, lib).define(f"{name}{schema}", tags=tags)
    return None


def impl(qualname: Any, types: Any, func: Callable | None = None, *, lib: Library | None = None) -> Any:
    """Adds a kernel of an op, which may be defined later.

    Args:
        qualname: ``"library::op"``, or an op. In the older form a `Library`.
        types: ``"cpu"``, ``"cuda"``, ``"opencl"``, ``"default"`` (all), or a list of these.
        func: The kernel. Default: none, which returns a decorator.
        lib: The `Library` with which the kernel goes. Default: it stays.

    Returns:
        The kernel, or a decorator.

    Example:
        >>> torch.library.define("docs_impl::minus_one", "(Tensor x) -> Tensor")
        >>> _ = torch.library.impl("docs_impl::minus_one", "cpu", lambda x: x - 1)
        >>> torch.ops.docs_impl.minus_one(torch.ones(2))
        tensor([0., 0.])
    """
    if isinstance(qualname, Library):  # the older form

        def wrap(function: Callable) -> Callable:
            qualname.impl(types, function, func if isinstance(func, str) else "")
            return function

        return wrap

    names = (types,) if isinstance(types, str) else tuple(types)
    keys = [_to_dispatch_key(each) for each in names]

    def register(function: Callable) -> Callable:
        name = qualname if isinstance(qualname, str) else _op_of(qualname).overload
        home = lib
        if home is None:
            home = Library(library_op.split_qualname(name)[0] if isinstance(name, str) else name.namespace, "IMPL")
            _FRAGMENTS.append(home)
        for key in keys:
            home.impl(name, function, key)
        return function

    return register if func is None else register(func)


def _to_dispatch_key(name: str) -> str:
    if name == "default":
        return "CompositeExplicitAutograd"
    return name if name in library_op.KEYS else library_op.dispatch_key_of(device(name).type)


def _undo_with(lib: Library | None, undo: Callable, *args: Any) -> None:
    """Undo a registration by `undo(*args)` when its library goes; without a library it stays."""
    if lib is not None:
        lib._undo.append(functools.partial(undo, *args))


def _restore_item(table: dict, key: Any, value: Any) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def register_kernel(op: Any, device_types: Any, func: Callable | None = None, /, *, lib: Library | None = None) -> Any:
    """Adds the kernel of an op for device types.

    Args:
        op: A `CustomOpDef`, an op of `torch.ops`, or its name.
        device_types: ``"cpu"``, ``"cuda"``, ``"opencl"``, a list of these, or ``"default"`` or ``None`` for all.
        func: The kernel. Default: none, which returns a decorator.
        lib: The `Library` with which the kernel goes. Default: it stays.

    Returns:
        The kernel, or a decorator.

    Example:
        >>> torch.library.define("docs_kernel::triple", "(Tensor x) -> Tensor")
        >>> _ = torch.library.register_kernel("docs_kernel::triple", "cpu", lambda x: 3 * x)
        >>> torch.ops.docs_kernel.triple(torch.ones(2))
        tensor([3., 3.])
    """
    found = _op_of(op)

    def register(function: Callable) -> Callable:
        before = dict(found.kernels)
        types = (device_types,) if isinstance(device_types, str) or device_types is None else tuple(device_types)
        for each in types:
            key = "CompositeExplicitAutograd" if each is None else _to_dispatch_key(each)
            found.kernels[key] = function
            _undo_with(lib, _restore_item, found.kernels, key, before.get(key))
        return function

    return register if func is None else register(func)


def register_fake(
    op: Any,
    func: Callable | None = None,
    /,
    *,
    lib: Library | None = None,
    _stacklevel: int = 1,
    allow_override: bool = True,
) -> Any:
    """Registers the function that computes the shapes and dtypes of an op's results.

    It is the op's kernel on the meta device, which captures use.

    Args:
        op: A `CustomOpDef`, an op of `torch.ops`, or its name.
        func: Function of the op's arguments that returns tensors without values. Default: none, which returns a
            decorator.
        lib: The `Library` with which it goes. Default: it stays.
        allow_override: Whether it may replace another one. Default: ``True``.

    Returns:
        The function, or a decorator.

    Raises:
        RuntimeError: There is no such op, or it has such a function and ``allow_override=False``.

    Example:
        >>> import torchlite as torch
        >>> torch.library.define("docs_fake::rows", "(Tensor x) -> Tensor")
        >>> @torch.library.register_fake("docs_fake::rows")
        ... def rows(x):
        ...     return x.new_empty(x.shape[0])
        >>> torch.ops.docs_fake.rows(torch.ones(3, 2, device="meta")).shape
        torch.Size([3])
    """
    found: Any
    try:
        found = _op_of(op)
    except RuntimeError:
        if not _ops.refused_libraries:
            raise
        found = None  # packages describe the ops of their compiled library also where it could not be loaded

    def register(function: Callable) -> Callable:
        if found is None:
            return function
        if not allow_override and found.fake is not None:
            raise RuntimeError(f"register_fake(...): the operator {found.name} already has a fake implementation")
        found.fake = function
        _undo_with(lib, setattr, found, "fake", None)
        return function

    return register if func is None else register(func)


def impl_abstract(
    qualname: str, func: Callable | None = None, *, lib: Library | None = None, _stacklevel: int = 1
) -> Any:
    """Registers the function that computes shapes; the older name of `register_fake`.

    Args:
        qualname: Name of the op.
        func: The function. Default: none, which returns a decorator.
        lib: The `Library` with which it goes. Default: it stays.

    Example:
        >>> torch.library.define("docs_abstract::same", "(Tensor x) -> Tensor")
        >>> _ = torch.library.impl_abstract("docs_abstract::same", torch.empty_like)
        >>> torch.ops.docs_abstract.same(torch.ones(3, device="meta")).shape
        torch.Size([3])
    """
    return register_fake(qualname, func, lib=lib)


def register_autograd(
    op: Any, backward: Callable, /, *, setup_context: Callable | None = None, lib: Library | None = None
) -> None:
    """Registers an op's derivative.

    Args:
        op: A `CustomOpDef`, an op of `torch.ops`, or its name.
        backward: Function ``(ctx, *grads)`` that returns a gradient, or ``None``, for each argument.
        setup_context: Function ``(ctx, inputs, output)`` that saves values in the forward pass. Default: none.
        lib: The `Library` with which it goes. Default: it stays.

    Raises:
        RuntimeError: The op writes to its arguments.

    Example:
        >>> torch.library.define("docs_autograd::triple", "(Tensor x) -> Tensor")
        >>> _ = torch.library.register_kernel("docs_autograd::triple", "cpu", lambda x: 3 * x)
        >>> torch.library.register_autograd("docs_autograd::triple", lambda ctx, grad: 3 * grad)
        >>> x = torch.ones(2, requires_grad=True)
        >>> torch.ops.docs_autograd.triple(x).sum().backward()
        >>> x.grad
        tensor([3., 3.])
    """
    definition = _definition_of(op)
    if definition is not None:
        definition.register_autograd(backward, setup_context=setup_context)
        return
    found = _op_of(op)
    if not found.schema.is_functional:
        raise RuntimeError(
            f"Cannot register autograd formula for non-functional operator {found.name} with schema {found.schema}. "
            "Please create a functional operator and register an autograd formula for that."
        )
    _no_keyword_tensors(found.schema)
    for name, value in (("backward", backward), ("setup_context", setup_context)):
        _undo_with(lib, setattr, found, name, getattr(found, name))
        setattr(found, name, value)


def register_autocast(op: Any, device_type: str, cast_inputs: Any, /, *, lib: Library | None = None) -> None:
    """Casts an op's floating-point inputs where autocast is on for a device type.

    Args:
        op: A `CustomOpDef`, an op of `torch.ops`, or its name.
        device_type: ``"cpu"``, ``"cuda"`` or ``"opencl"``.
        cast_inputs: The dtype.
        lib: The `Library` with which the rule goes. Default: it stays.

    Raises:
        ValueError: The device type is another one.

    Example:
        >>> torch.library.define("docs_autocast::double", "(Tensor x) -> Tensor")
        >>> _ = torch.library.register_kernel("docs_autocast::double", "cpu", lambda x: 2 * x)
        >>> torch.library.register_autocast("docs_autocast::double", "cpu", torch.float16)
        >>> with torch.autocast("cpu", dtype=torch.float16):
        ...     torch.ops.docs_autocast.double(torch.ones(2)).dtype
        torch.float16
    """
    if device_type not in ("cpu", "cuda", "opencl"):
        raise ValueError(f"Unknown device type: {device_type}")
    casts = _op_of(op).cast
    _undo_with(lib, _restore_item, casts, device_type, casts.get(device_type))
    casts[device_type] = cast_inputs


def register_vmap(op: Any, func: Callable | None = None, /, *, lib: Library | None = None) -> Any:
    """Registers an op's rule under `vmap`.

    Args:
        op: A `CustomOpDef`, an op of `torch.ops`, or its name.
        func: Function ``(info, in_dims, *args)`` that returns ``(results, out_dims)``. Default: none, which returns a
            decorator.
        lib: The `Library` with which it goes. Default: it stays.

    Returns:
        The function, or a decorator.

    Example:
        >>> torch.library.define("docs_vmap::double", "(Tensor x) -> Tensor")
        >>> _ = torch.library.register_kernel("docs_vmap::double", "cpu", lambda x: 2 * x)
        >>> _ = torch.library.register_vmap("docs_vmap::double", lambda info, dims, x: (2 * x, dims[0]))
        >>> torch.vmap(torch.ops.docs_vmap.double)(torch.ones(2))
        tensor([2., 2.])
    """
    found = _op_of(op)
    _no_keyword_tensors(found.schema)

    def register(function: Callable) -> Callable:
        _undo_with(lib, setattr, found, "vmap_rule", found.vmap_rule)
        found.vmap_rule = function
        return function

    return register if func is None else register(func)


def register_torch_dispatch(
    op: Any, torch_dispatch_class: Any, func: Callable | None = None, /, *, lib: Library | None = None
) -> Any:
    """Registers what an op does for a class with `__torch_dispatch__`.

    Args:
        op: A `CustomOpDef`, an op of `torch.ops`, or its name.
        torch_dispatch_class: A subclass of tensors, or of TorchDispatchMode.
        func: The function. Default: none, which returns a decorator.
        lib: The `Library` with which it goes. Default: it stays.

    Returns:
        The function, or a decorator.

    Example:
        >>> from torchlite.utils._python_dispatch import TorchDispatchMode
        >>> class Recording(TorchDispatchMode):
        ...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        ...         return func(*args, **(kwargs or {}))
        >>> torch.library.define("docs_dispatch::double", "(Tensor x) -> Tensor")
        >>> _ = torch.library.register_kernel("docs_dispatch::double", "cpu", lambda x: 2 * x)
        >>> @torch.library.register_torch_dispatch("docs_dispatch::double", Recording)
        ... def record(mode, func, types, args, kwargs):
        ...     print("double")
        ...     return 2 * args[0]
        >>> with Recording():
        ...     _ = torch.ops.docs_dispatch.double(torch.ones(2))
        double
    """
    found = _op_of(op)

    def register(function: Callable) -> Callable:
        _undo_with(lib, _restore_item, found.by_class, torch_dispatch_class, found.by_class.get(torch_dispatch_class))
        found.by_class[torch_dispatch_class] = function
        return function

    return register if func is None else register(func)


class FakeImplCtx:
    """The context of a function of `register_fake`."""

    def new_dynamic_size(self, *, min: int = 0, max: int | None = None) -> int:
        """NotImplementedError: a size that depends on data has no symbol."""
        raise NotImplementedError("torchlite has no symbols for sizes that depend on data: they are known at run time")

    create_unbacked_symint = new_dynamic_size


def get_ctx() -> FakeImplCtx:
    """Returns the context of the function of `register_fake` that runs.

    Example:
        >>> type(torch.library.get_ctx()).__name__
        'FakeImplCtx'
    """
    return FakeImplCtx()


class _Kernel:
    """A kernel of an op, from `get_kernel`."""

    def __init__(self, function: Callable) -> None:
        self._function = function

    def call_boxed(self, keys: Any, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)


def get_kernel(op: Any, dispatch_key: Any) -> _Kernel:
    """Returns the kernel of an op under a key.

    Args:
        op: An op of `torch.ops`, or its name.
        dispatch_key: The key, such as ``"CPU"``.

    Returns:
        An object whose ``call_boxed(keys, *args)`` calls the kernel; ``keys`` has no effect.

    Raises:
        RuntimeError: The key is unknown, or there is no kernel under it.

    Example:
        >>> torch.library.define("docs_get::double", "(Tensor x) -> Tensor")
        >>> _ = torch.library.register_kernel("docs_get::double", "cpu", lambda x: 2 * x)
        >>> torch.library.get_kernel("docs_get::double", "CPU").call_boxed(None, torch.ones(2))
        tensor([2., 2.])
    """
    key = str(getattr(dispatch_key, "name", dispatch_key))
    if key not in library_op.KEYS:
        raise RuntimeError(f"could not parse dispatch key: {key}")
    kernel = _op_of(op).kernels.get(key)
    if kernel is None:
        raise RuntimeError(f"there is no kernel of {op} under {key}")
    return _Kernel(kernel)


def triton_op(name: str, fn: Callable | None = None, /, *, mutates_args: Any, schema: str | None = None) -> Any:
    """Raises NotImplementedError: Triton's kernels need PyTorch's CUDA tensors and compiler.

    Args:
        name: No effect.
        fn: No effect.
        mutates_args: No effect.
        schema: No effect.

    Raises:
        NotImplementedError: Always.

    Example:
        >>> torch.library.triton_op("docs::scale", mutates_args=())
        Traceback (most recent call last):
        NotImplementedError: torchlite runs no Triton kernels; use torch.library.custom_op
    """
    raise NotImplementedError("torchlite runs no Triton kernels; use torch.library.custom_op")


def wrap_triton(triton_kernel: Callable, /) -> Any:
    """Raises NotImplementedError, as `triton_op` does.

    Args:
        triton_kernel: No effect.

    Raises:
        NotImplementedError: Always.

    Example:
        >>> torch.library.wrap_triton(None)
        Traceback (most recent call last):
        NotImplementedError: torchlite runs no Triton kernels; use torch.library.custom_op
    """
    raise NotImplementedError("torchlite runs no Triton kernels; use torch.library.custom_op")


__dir__ = make_module_dir(globals(), hidden="FakeImplCtx")
