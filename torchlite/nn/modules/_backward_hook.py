"""Full backward hooks: identity functions on a module's inputs and outputs that see the gradients pass by."""

import torchlite as torch
from torchlite.autograd import Function


class _Tap(Function):
    """The identity on several tensors; `callback(grads)` sees, and may replace, their gradients in
    the backward pass.
    """

    @staticmethod
    def forward(ctx, callback, *tensors):
        ctx.callback = callback
        ctx.set_materialize_grads(False)
        ctx.mark_non_differentiable(*[tensor for tensor in tensors if not tensor.requires_grad])
        return tuple(tensor.view_as(tensor) for tensor in tensors)

    @staticmethod
    def backward(ctx, *grads):
        return (None, *ctx.callback(grads))


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


class BackwardHook:
    """The hooks of one call of a module."""

    def __init__(self, module, hooks, pre_hooks):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.grad_outputs = None
        self.inputs_tapped = False

    def _tap(self, values, callback):
        """`values` with its tensors replaced by tapped ones, or None when no tensor of it wants a gradient."""
        values = list(values)
        places = [place for place, value in enumerate(values) if isinstance(value, torch.Tensor)]
        if not places or not torch.is_grad_enabled() or not any(values[place].requires_grad for place in places):
            return None
        size = len(values)

        def spread(grads):
            everything = [None] * size
            for place, grad in zip(places, grads, strict=True):
                everything[place] = grad
            changed = callback(tuple(everything))
            return tuple(changed[place] for place in places)

        for place, tapped in zip(
            places, _as_tuple(_Tap.apply(spread, *[values[place] for place in places])), strict=True
        ):
            if values[place].requires_grad:
                values[place] = tapped
        return tuple(values)

    def _checked(self, hook_result, like, what):
        if hook_result is None:
            return like
        result = _as_tuple(hook_result)
        if len(result) != len(like):
            raise RuntimeError(
                f"Backward hook returned an invalid number of {what}, got {len(result)}, but expected {len(like)}"
            )
        return result

    def _on_inputs(self, grads):
        for hook in self.hooks:
            grads = self._checked(hook(self.module, grads, self.grad_outputs), grads, "grad_input")
        self.grad_outputs = None
        return grads

    def _on_outputs(self, grads):
        for hook in self.pre_hooks:
            grads = self._checked(hook(self.module, grads), grads, "grad_output")
        self.grad_outputs = grads
        if not self.inputs_tapped:
            for hook in self.hooks:
                result = hook(self.module, (None,) * self.input_count, grads)
                if result is not None and not (isinstance(result, tuple) and all(item is None for item in result)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or "
                        "None for all gradients."
                    )
        return grads

    def tap_inputs(self, args):
        self.input_count = len(args)
        tapped = self._tap(args, self._on_inputs)
        self.inputs_tapped = tapped is not None
        return tapped if tapped is not None else args

    def tap_outputs(self, result):
        if isinstance(result, torch.Tensor):
            tapped = self._tap((result,), self._on_outputs)
            return tapped[0] if tapped is not None else result
        if not isinstance(result, (tuple, list)):
            import warnings

            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors"
                f" but received {type(result)}",
                stacklevel=4,
            )
            return result
        tapped = self._tap(result, self._on_outputs)
        if tapped is None:
            return result
        return type(result)(*tapped) if hasattr(result, "_fields") else type(result)(tapped)
