"""`torch.package`: reads packages, archives of pickles, resources and the source of the modules that they need.

`PackageImporter` loads data and TorchScript modules of a package. It runs the Python code of a package only with
``weights_only=False``. torchlite writes no packages.
"""

from __future__ import annotations

from .analyze import is_from_package as is_from_package
from .file_structure_representation import Directory as Directory
from .glob_group import GlobGroup as GlobGroup
from .package_importer import PackageImporter as PackageImporter

__all__ = ["Directory", "GlobGroup", "PackageImporter", "is_from_package"]
