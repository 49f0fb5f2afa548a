"""Apple's GPUs by PyTorch's name: there are none here."""

from torchlite._settings.module_dir import make_module_dir

from ._device.unavailable_devices import make_functions

_ANSWERED = "is_available device_count manual_seed"
_CALLED = {
    "get_rng_state": "getDefaultGenerator", "set_rng_state": "getDefaultGenerator", "seed": "getDefaultGenerator",
    "synchronize": "deviceSynchronize", "empty_cache": "emptyCache",
    "set_per_process_memory_fraction": "setMemoryFraction", "current_allocated_memory": "getCurrentAllocatedMemory",
    "driver_allocated_memory": "getDriverAllocatedMemory", "recommended_max_memory": "getRecommendedMaxMemory",
}  # fmt: skip
globals().update(
    make_functions(
        "mps",
        _ANSWERED,
        " ".join(_CALLED),
        lambda name: RuntimeError(f"Cannot execute {_CALLED[name]}() without MPS backend."),
    )
)
__all__ = [*_ANSWERED.split(), *_CALLED]  # noqa: PLE0604


__dir__ = make_module_dir(globals())
