"""What an environment's packages take on the disk, in MB, byte code included: `python sizes.py`.

Run it in an environment with torchlite and in one with PyTorch: the largest ones, and what is beside the packages that
both have.
"""

from __future__ import annotations

import sysconfig
from importlib import metadata
from pathlib import Path


def size(path: Path) -> float:
    """Bytes on the disk of a file or a folder, in MB."""
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file() and not file.is_symlink()]
    return sum(getattr(file.stat(), "st_blocks", 0) * 512 or file.stat().st_size for file in files) / 1e6


def by_package() -> dict[str, float]:
    """MB by installed distribution."""
    found = {}
    for package in metadata.distributions():
        roots = {Path(package.locate_file(file.parts[0])) for file in package.files or () if ".." not in file.parts}
        found[package.metadata["Name"]] = sum(size(root) for root in roots if root.exists())
    return found


def main() -> None:
    packages = by_package()
    print(f"{'site-packages':28} {size(Path(sysconfig.get_paths()['purelib'])):8.0f} MB")
    for name in sorted(packages, key=lambda name: -packages[name])[:8]:
        print(f"{name:28} {packages[name]:8.0f}")
    print("---")
    for name in ("torch", "torchlite-nd", "ml_dtypes", "numpy", "sympy", "networkx", "mpmath"):
        if name in packages:
            print(f"{name:28} {packages[name]:8.0f}")


if __name__ == "__main__":
    main()
