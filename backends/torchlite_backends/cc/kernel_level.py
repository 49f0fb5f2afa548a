"""Selection of the level of a process's programs, and with it of their origin."""

from __future__ import annotations

import functools

from torchlite_backends.cpu_engines import processor_level


@functools.cache
def select_level() -> str:
    """Return the level for which this process loads and builds all its programs.

    It is the one that `TORCHLITE_CPU_LEVEL` names. Else it is the processor's own if a user has built kernels for it
    (`build-kernels`), then the level of the installed distribution, then again the processor's own. Eager ops and
    groups of a compiled function therefore have the same instructions, whatever built them.
    """
    from . import kernel_distribution, program_build

    named = processor_level.requested_level()
    if named:
        return named
    if program_build.is_prebuilt(processor_level.NATIVE):
        return processor_level.NATIVE
    return kernel_distribution.find_distribution().level or processor_level.NATIVE


@functools.cache
def is_distributed() -> bool:
    """True if programs come from the installed distribution first."""
    from . import kernel_distribution

    level = select_level()
    return level != processor_level.NATIVE and kernel_distribution.find_distribution().level == level
