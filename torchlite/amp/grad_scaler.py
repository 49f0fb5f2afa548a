"""`GradScaler`: scales the loss so that float16 gradients do not underflow, and skips steps with infinite gradients."""

from __future__ import annotations

import collections.abc
import inspect
import warnings
from collections import defaultdict
from enum import Enum
from typing import TYPE_CHECKING, Any

from torchlite._settings.module_dir import make_module_dir

from .. import Tensor
from .._dispatch.autograd_graph import bump_version
from .._dispatch.kernel_recorder import record_as_single_step
from .autocast_mode import _cuda_is_available

if TYPE_CHECKING:
    from torchlite._stubs.aliases import DeviceLike
    from torchlite.optim.optimizer import Optimizer


__all__ = ["GradScaler", "OptState"]

_FIX_HINT = "This may indicate your script did not use scaler.scale(loss or outputs) earlier in the iteration."


class OptState(Enum):
    """Progress of an optimizer in the current iteration of a `GradScaler`.

    Example:
        >>> [state.name for state in torch.amp.grad_scaler.OptState]
        ['READY', 'UNSCALED', 'STEPPED']
    """

    READY = 0
    UNSCALED = 1
    STEPPED = 2


def _refresh_per_optimizer_state() -> dict[str, Any]:
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class _MultiDeviceReplicator:
    """Copies of a tensor on several devices, created on demand."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor
        self.copies: dict = {}

    def get(self, device: DeviceLike) -> Any:
        if device not in self.copies:
            self.copies[device] = self.tensor.to(device=device, non_blocking=True, copy=True)
        return self.copies[device]


class GradScaler:
    """Multiplies the loss by a scale before backward, so that small float16 gradients do not become zero.

    `step` divides the gradients by the scale, and skips the optimizer's step if one of them is infinite or NaN.
    `update`
    then multiplies the scale by ``backoff_factor``; after ``growth_interval`` steps in a row without a skip it
    multiplies
    it by ``growth_factor``. The check runs on the gradients' device. `step` reads one number from the device, and none
    if
    the optimizer has ``fused=True``.

    Args:
        device: Type of the loss's device: ``"cuda"``, ``"cpu"`` or ``"opencl"``. Default: ``"cuda"``.
        init_scale: The first scale. Default: 65536.
        growth_factor: Factor of growth, above 1. Default: 2.
        backoff_factor: Factor after an infinite gradient, below 1. Default: 0.5.
        growth_interval: Number of steps in a row before the scale grows. Default: 2000.
        enabled: ``False`` turns all methods off; `step` then calls the optimizer's. Default: ``True``.

    Raises:
        AssertionError: A factor is out of range.

    Example:
        >>> weight = torch.nn.Parameter(torch.ones(2))
        >>> optimizer, scaler = torch.optim.SGD([weight], lr=0.5), torch.amp.GradScaler("cpu", init_scale=1024.0)
        >>> scaler.scale((weight * 2).sum()).backward()
        >>> scaler.step(optimizer)
        >>> scaler.update()
        >>> weight.tolist(), scaler.get_scale()
        ([0.0, 0.0], 1024.0)
        >>> scaler.scale((weight * float("inf")).sum()).backward(); scaler.step(optimizer); scaler.update()
        >>> weight.tolist(), scaler.get_scale()
        ([0.0, 0.0], 512.0)

    References:
        - P. Micikevicius et al. Mixed precision training. 2018.

    See also:
        `autocast`.
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device, self._enabled = device, enabled
        if enabled and device == "cuda" and not _cuda_is_available():
            warnings.warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.", stacklevel=2)
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale, self._init_growth_tracker = init_scale, 0
        self._scale: Tensor | None = None  # created on the device of the first loss
        self._growth_tracker: Tensor | None = None
        self._growth_factor, self._backoff_factor, self._growth_interval = (
            growth_factor,
            backoff_factor,
            growth_interval,
        )
        self._per_optimizer_states: dict = defaultdict(_refresh_per_optimizer_state)

    # -- the loss

    def scale(self, outputs: Any) -> Any:
        """Multiplies outputs by the scale.

        Args:
            outputs: A tensor, or an iterable of tensors, which may be nested.

        Returns:
            The products; lists and tuples stay lists and tuples, another iterable becomes an iterator.

        Raises:
            ValueError: An item is neither a tensor nor an iterable.
        """
        if not self._enabled:
            return outputs
        copies: list[_MultiDeviceReplicator] = []

        def scaled(value):
            if isinstance(value, Tensor):
                if not copies:
                    copies.append(_MultiDeviceReplicator(self._scale_on(value.device)))
                return value * (
                    copies[0].tensor if value.device == copies[0].tensor.device else copies[0].get(value.device)
                )
            if not isinstance(value, collections.abc.Iterable):
                raise ValueError("outputs must be a Tensor or an iterable of Tensors")
            items = map(scaled, value)
            return type(value)(items) if isinstance(value, (list, tuple)) else items

        return scaled(outputs)

    def _scale_on(self, device):
        """Return the scale, created on `device` if there is none."""
        if self._scale is None:
            from .. import float32, full, int32

            self._scale = full((), self._init_scale, dtype=float32, device=device)
            self._growth_tracker = full((), self._init_growth_tracker, dtype=int32, device=device)
        return self._scale

    def _check_scale_created(self, caller: str):
        """The scale and the count of good steps; an error names the method that came too early."""
        if self._scale is None:
            raise AssertionError(f"Attempted {caller} but _scale is None.  " + _FIX_HINT)
        if self._growth_tracker is None:
            raise AssertionError(f"Attempted {caller} but _growth_tracker is None.  " + _FIX_HINT)
        return self._scale, self._growth_tracker

    # -- the gradients

    @record_as_single_step
    def unscale_(self, optimizer: Optimizer) -> None:
        """Divides the gradients of an optimizer's parameters by the scale, in place.

        Call it before code that clips or reads the gradients. Otherwise `step` does it.

        Args:
            optimizer: The optimizer.

        Raises:
            RuntimeError: It ran already since the last `update`, or `step` did.
        """
        if not self._enabled:
            return
        scale, _ = self._check_scale_created("unscale_")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        state["found_inf_per_device"] = self._unscale_grads_(
            optimizer, scale.reciprocal(), _new_found_inf(scale), False
        )
        state["stage"] = OptState.UNSCALED

    def _unscale_grads_(self, optimizer, inv_scale, found_inf, allow_fp16: bool) -> dict:
        """Multiply the gradients, and record for each device whether one is not finite: {device: 0-d float32
        tensor}.
        """
        from .. import _amp_foreach_non_finite_check_and_unscale_ as unscale
        from .. import float16

        factors, notes = _MultiDeviceReplicator(inv_scale), _MultiDeviceReplicator(found_inf)
        grads: dict = defaultdict(list)
        for group in optimizer.param_groups:
            for param in group["params"]:
                if not isinstance(param, Tensor):
                    raise AssertionError(f"expected param to be torch.Tensor, got {type(param).__name__}")
                if param.grad is None:
                    continue
                if param.grad.dtype is float16 and not allow_fp16:
                    raise ValueError("Attempting to unscale FP16 gradients.")
                grad = param.grad
                if grad.is_sparse:  # the values; float16 ones are summed first, and the sum may be infinite
                    if grad.dtype is float16:
                        param.grad = grad = grad.coalesce()
                    grad = grad._values()
                grads[grad.device].append(grad)
        for device, here in grads.items():
            unscale(here, notes.get(device), factors.get(device))
            for grad in here:
                bump_version(grad)
        return notes.copies

    def _check_inf_per_device(self, optimizer) -> dict:
        """Check for infinities without changing a gradient."""
        scale, _ = self._check_scale_created("_check_inf_per_device")
        found = self._unscale_grads_(optimizer, _new_found_inf(scale) + 1, _new_found_inf(scale), True)
        self._per_optimizer_states[id(optimizer)]["found_inf_per_device"] = found
        return found

    def _found_inf_per_device(self, optimizer) -> dict:
        return self._per_optimizer_states[id(optimizer)]["found_inf_per_device"]

    # -- the step

    @record_as_single_step
    def step(self, optimizer: Optimizer, *args: Any, **kwargs: Any) -> Any:
        """Unscales the gradients, if `unscale_` did not, and steps the optimizer unless one is infinite or NaN.

        Args:
            optimizer: The optimizer.
            args: Arguments of its `step`.
            kwargs: Keyword arguments of its `step`; ``closure`` is not supported.

        Returns:
            The result of the optimizer's `step`; ``None`` if it is skipped.

        Raises:
            RuntimeError: It ran already since the last `update`, or a closure is given.
            AssertionError: `scale` was not called.
        """
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale_created("step")
        state = self._per_optimizer_states[id(optimizer)]
        if state["stage"] is OptState.STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if getattr(optimizer, "_step_supports_amp_scaling", False):
            result = self._step_with_grad_scaler(optimizer, state, args, kwargs)
        else:
            if state["stage"] is OptState.READY:
                self.unscale_(optimizer)
            if not state["found_inf_per_device"]:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            found = sum(note.item() for note in state["found_inf_per_device"].values())
            result = None if found else optimizer.step(*args, **kwargs)
        state["stage"] = OptState.STEPPED
        return result

    def _step_with_grad_scaler(self, optimizer, state, args, kwargs):
        """Step an optimizer that unscales and skips by itself, from `grad_scale` and `found_inf`."""
        if "grad_scaler" in inspect.signature(optimizer.step).parameters:
            warnings.warn(
                "GradScaler is going to stop passing itself as a keyword argument to the passed optimizer. In the "
                "near future GradScaler registers `grad_scale: Tensor` and `found_inf: Tensor` to the passed "
                "optimizer and let the optimizer use them directly.",
                FutureWarning,
                stacklevel=3,
            )
            return optimizer.step(*args, **kwargs, grad_scaler=self)
        if state["stage"] is OptState.READY:
            self._check_inf_per_device(optimizer)
        scale = self._scale_on(None)
        notes = [note.to(scale.device, non_blocking=True) for note in state["found_inf_per_device"].values()] or [
            _new_found_inf(scale)
        ]
        optimizer.found_inf = sum(notes[1:], notes[0])
        own = getattr(optimizer, "grad_scale", None)
        optimizer.grad_scale = own if state["stage"] is OptState.UNSCALED else scale if own is None else scale * own
        try:
            return optimizer.step(*args, **kwargs)
        finally:
            del optimizer.grad_scale, optimizer.found_inf

    # -- the scale

    @record_as_single_step
    def update(self, new_scale: Any = None) -> None:
        """Ends an iteration: adapts the scale to what the steps found.

        Args:
            new_scale: The new scale, a float or a tensor of one element on the scaler's device. Default: the scale
                adapts.

        Raises:
            AssertionError: ``new_scale`` is neither, or `scale` was not called.
        """
        if not self._enabled:
            return
        scale, growth_tracker = self._check_scale_created("update")
        if isinstance(new_scale, float):
            scale.fill_(new_scale)
        elif new_scale is not None:
            if new_scale.device.type != self._device or new_scale.numel() != 1 or new_scale.requires_grad:
                raise AssertionError(
                    "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
                    "requires_grad=False."
                )
            scale.copy_(new_scale)
        else:
            self._follow_scale(scale, growth_tracker)
        self._per_optimizer_states = defaultdict(_refresh_per_optimizer_state)

    def _follow_scale(self, scale, growth_tracker) -> None:
        from .. import _amp_update_scale_ as update

        notes = [
            note.to(device=scale.device, non_blocking=True)
            for state in self._per_optimizer_states.values()
            for note in state["found_inf_per_device"].values()
        ]
        if not notes:
            raise AssertionError("No inf checks were recorded prior to update.")
        update(
            scale,
            growth_tracker,
            sum(notes[1:], notes[0]),
            self._growth_factor,
            self._backoff_factor,
            self._growth_interval,
        )

    def _get_scale_async(self):
        return self._scale

    def get_scale(self) -> float:
        """Return the scale as a number, read from the device; 1.0 if scaling is disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else self._scale.item()

    def _get_growth_tracker(self) -> int:
        if not self._enabled:
            return 0
        return self._init_growth_tracker if self._growth_tracker is None else int(self._growth_tracker.item())

    def get_growth_factor(self) -> float:
        """Return the growth factor of the scale."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Sets the factor by which the scale grows.

        Args:
            new_factor: The factor.
        """
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return the factor of the scale after an infinite gradient."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Sets the factor of the scale after an infinite gradient.

        Args:
            new_factor: The factor.
        """
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """After how many good steps in a row the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Sets the number of steps in a row before the scale grows.

        Args:
            new_interval: The number.
        """
        self._growth_interval = new_interval

    def is_enabled(self) -> bool:
        """True if this scaler is enabled."""
        return self._enabled

    # -- checkpoints

    def state_dict(self) -> dict:
        """Return the scale, the factors, the interval and the count of successful steps, as numbers; empty if scaling
        is disabled. Call it after `update`.
        """
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._get_growth_tracker(),
        }

    def load_state_dict(self, state_dict: dict) -> None:
        """Loads what `state_dict` returned.

        Args:
            state_dict: The state.

        Raises:
            RuntimeError: The state is empty, as that of a disabled scaler is.
        """
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale, self._init_growth_tracker = state_dict["scale"], state_dict["_growth_tracker"]
        self._growth_factor, self._backoff_factor = state_dict["growth_factor"], state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        if self._scale is not None and self._growth_tracker is not None:
            self._scale.fill_(self._init_scale)
            self._growth_tracker.fill_(self._init_growth_tracker)

    def __getstate__(self) -> dict:
        state = dict(self.__dict__)
        if self._enabled:
            if self._per_optimizer_states:
                raise AssertionError(
                    "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                    "scaler.update()."
                )
            state.update(
                _init_scale=self.get_scale(),
                _init_growth_tracker=self._get_growth_tracker(),
                _scale=None,
                _growth_tracker=None,
            )
        return state


def _new_found_inf(scale):
    return scale.new_zeros(())


__dir__ = make_module_dir(globals())
