"""Full backward hooks: identity functions on a module's inputs and outputs that observe the gradients."""

import warnings

import torchlite as torch
from torchlite.autograd import Function
from torchlite.autograd.hook_runner import check_hook_results


class BackwardHookFunction(Function):
    """The identity on several tensors; `callback(grads)` receives, and may replace, their gradients in backward.

    are_inputs: a missing gradient is zeros; else None.
    """

    @staticmethod
    def forward(ctx, callback, are_inputs, *tensors):
        ctx.callback = callback
        ctx.set_materialize_grads(are_inputs)
        same = tuple(tensor.view_as(tensor) for tensor in tensors)
        ctx.mark_non_differentiable(
            *[out for tensor, out in zip(tensors, same, strict=True) if not tensor.requires_grad]
        )
        return same

    @staticmethod
    def backward(ctx, *grads):
        return (None, None, *check_hook_results(grads, ctx.callback(grads), ctx.callback))


def _as_tuple(value):
    return value if isinstance(value, tuple) else (value,)


def _replace_at(values, places, items):
    """Return `values`, a tuple of any class, with `items` at the indices `places`."""
    changed = list(values)
    for place, item in zip(places, items, strict=True):
        changed[place] = item
    return tuple(changed) if type(values) is tuple else type(values)(*changed)


class BackwardHook:
    """The backward hooks of one call of a module.

    `setup_input_hook` and `setup_output_hook` put identity functions around arguments and result, which observe the
    gradients.

    Args:
        module: The module.
        user_hooks: Functions ``hook(module, grad_input, grad_output)``.
        user_pre_hooks: Functions ``hook(module, grad_output)``.

    Example:
        >>> from torchlite.utils.hooks import BackwardHook
        >>> layer, x = torch.nn.ReLU(), torch.ones(2, requires_grad=True)
        >>> hook = BackwardHook(layer, [lambda module, inputs, outputs: print(outputs)], [])
        >>> (args,) = hook.setup_input_hook((x,))
        >>> hook.setup_output_hook(layer(args)).sum().backward()
        (tensor([1., 1.]),)
    """

    def __init__(self, module, user_hooks, user_pre_hooks):
        self.module, self.user_hooks, self.user_pre_hooks = module, user_hooks, user_pre_hooks
        self.grad_outputs = None
        self.n_inputs = -1
        self.inputs_tapped = False

    def _attach_hook_function(self, values, callback, are_inputs):
        """Return `values` with its tensors replaced by tapped ones, or None if none of them requires grad."""
        places = [place for place, value in enumerate(values) if isinstance(value, torch.Tensor)]
        if not torch.is_grad_enabled() or not any(values[place].requires_grad for place in places):
            return None
        size = len(values)

        def hook(grads):
            changed = callback(_replace_at((None,) * size, places, grads))
            return tuple(changed[place] for place in places)

        tapped = BackwardHookFunction.apply(hook, are_inputs, *[values[place] for place in places])
        return _replace_at(values, places, _as_tuple(tapped))

    def _run_backward_hooks(self, grads):
        if self.grad_outputs is None:
            return grads  # they did not pass through the module's output, as in double backward
        for hook in self.user_hooks:
            result = hook(self.module, grads, self.grad_outputs)
            if result is None:
                continue
            if len(result) != len(grads):
                raise RuntimeError(
                    f"Backward hook returned an invalid number of grad_input, got {len(result)}, but expected "
                    f"{len(grads)}"
                )
            grads = result
        self.grad_outputs = None
        return grads

    def _run_backward_pre_hooks(self, grads):
        for hook in self.user_pre_hooks:
            result = hook(self.module, grads)
            if result is None:
                continue
            if len(result) != len(grads):
                raise RuntimeError(
                    f"Backward pre hook returned an invalid number of grad_output, got {len(result)}, but expected "
                    f"{len(grads)}"
                )
            grads = result
        if self.inputs_tapped:
            self.grad_outputs = grads
            return grads
        if self.user_hooks:
            warnings.warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no "
                "inputs require gradients. See "
                "https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html"
                "#torch.nn.Module.register_full_backward_hook for more details.",
                stacklevel=5,
            )
        for hook in self.user_hooks:
            result = hook(self.module, (None,) * self.n_inputs, grads)
            if result is not None and not (isinstance(result, tuple) and all(item is None for item in result)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None "
                    "for all gradients."
                )
        return grads

    def setup_input_hook(self, args):
        """Returns the arguments, with hooks on those that require grad. Call it before `setup_output_hook`.

        Args:
            args: Tuple of the module's arguments.
        """
        self.n_inputs = len(args)
        tapped = self._attach_hook_function(args, self._run_backward_hooks, True)
        self.inputs_tapped = tapped is not None
        return args if tapped is None else tapped

    def setup_output_hook(self, args):
        """Returns the result, with hooks on tensors that require grad.

        Args:
            args: The module's result, a tensor or a tuple.
        """
        tapped = self._attach_hook_function(_as_tuple(args), self._run_backward_pre_hooks, False)
        if tapped is None:
            return args
        return tapped if isinstance(args, tuple) else tapped[0]
