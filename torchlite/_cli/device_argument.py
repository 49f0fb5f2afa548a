"""Check of the option `--device`."""

from __future__ import annotations

from .command_line import CommandError, UsageError, one_line, program_name
from .info import usable_devices, why_not_usable


def check_device(name: str, with_data: bool = False) -> None:
    """Raise UsageError for a device that does not exist, CommandError for one that cannot be used here. `with_data`
    refuses the device "meta" too.
    """
    kind, colon, digits = name.partition(":")
    kind = {"ocl": "opencl"}.get(kind, kind)
    reason = why_not_usable(kind)
    if reason:
        raise CommandError(f"--device {name}: {one_line(reason)}")
    if reason is None or (with_data and kind == "meta"):
        raise UsageError(f"there is no device '{name}': usable here {_list_usable_devices()}")
    from .._dispatch.backend_registry import backend_of

    if colon and not (digits.isdecimal() and int(digits) < backend_of(kind).device_count()):
        raise UsageError(f"there is no device '{name}': usable here {_list_usable_devices()}")


def _list_usable_devices() -> str:
    names = usable_devices()
    return f"{'is' if len(names) == 1 else 'are'} {', '.join(names)} (`{program_name()} info` explains the others)"
