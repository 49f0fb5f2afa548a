"""Meta's accelerators by PyTorch's name: there are none here."""

from torchlite._settings.module_dir import make_module_dir

from ._device.unavailable_devices import make_functions

_ANSWERED = (
    "is_available is_initialized device_count manual_seed manual_seed_all seed seed_all get_rng_state_all "
    "memory_allocated max_memory_allocated memory_stats"
)
_CALLED = {
    "init": "init", "synchronize": "getCurrentDevice", "current_device": "getCurrentDevice",
    "current_stream": "getCurrentDevice", "default_stream": "getCurrentDevice",
    "get_device_capability": "getCurrentDevice", "get_device_properties": "getCurrentDevice",
    "empty_cache": "emptyCache", "set_device": "setCurrentDevice", "snapshot": "memorySnapshot",
}  # fmt: skip
globals().update(
    make_functions(
        "mtia",
        _ANSWERED,
        " ".join(_CALLED),
        lambda name: RuntimeError(f"Cannot execute {_CALLED[name]}() without MTIA backend."),
    )
)
__all__ = [*_ANSWERED.split(), *_CALLED]  # noqa: PLE0604


__dir__ = make_module_dir(globals())
