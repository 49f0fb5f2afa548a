"""Which OpenCL devices there are: drivers found, Intel's runtime from pip made visible, devices ordered."""
from __future__ import annotations

import ctypes
import functools
import glob
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

_INTEL_NEEDS = ("libintlc.so.5", "libirng.so", "libimf.so", "libsvml.so", "libtbb.so.12")


def show_intel_runtime() -> bool:
    """Make the CPU runtime of the pip package intel-opencl-rt visible to the OpenCL loader, beside the system's drivers. Whether it is there."""
    library = Path(sys.prefix) / "lib" / "libintelocl.so"
    if not library.exists():
        return False
    try:
        for name in _INTEL_NEEDS:
            ctypes.CDLL(str(library.parent / name), mode=ctypes.RTLD_GLOBAL)
    except OSError:
        return False
    folder = Path(tempfile.mkdtemp(prefix="torchlite-opencl-"))
    vendors = os.environ.get("OCL_ICD_VENDORS") or "/etc/OpenCL/vendors"
    for file in glob.glob(os.path.join(vendors, "*.icd")) if os.path.isdir(vendors) else []:
        (folder / os.path.basename(file)).write_text(Path(file).read_text())
    (folder / "torchlite-intel.icd").write_text(f"{library}\n")
    os.environ["OCL_ICD_VENDORS"] = str(folder)
    return True


@functools.cache
def devices() -> list[Any]:
    """pyopencl devices in the order of their indices: GPUs first; `TORCHLITE_OPENCL_PLATFORM` keeps the platforms whose name contains it."""
    show_intel_runtime()
    import pyopencl as cl
    wanted = os.environ.get("TORCHLITE_OPENCL_PLATFORM", "").lower()
    found = [d for p in cl.get_platforms() if wanted in p.name.lower() for d in p.get_devices()]
    return sorted(found, key=lambda d: (not d.type & cl.device_type.GPU, d.platform.name, d.name))
