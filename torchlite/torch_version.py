"""The version that torchlite answers as `torch.__version__` where it goes by PyTorch's name."""

from __future__ import annotations

import re
from typing import Any

from torchlite._settings.module_dir import make_module_dir

__all__ = ["TorchVersion"]

_FORM = re.compile(
    r"\s*v?(?:(?P<epoch>\d+)!)?(?P<release>\d+(?:\.\d+)*)"
    r"(?:[-_.]?(?P<pre>alpha|beta|preview|pre|rc|a|b|c)[-_.]?(?P<pre_number>\d*))?"
    r"(?P<is_post>-(?P<implied>\d+)|[-_.]?(?:post|rev|r)[-_.]?(?P<post>\d*))?"
    r"(?P<is_dev>[-_.]?dev[-_.]?(?P<dev>\d*))?"
    r"(?:\+(?P<local>[a-z0-9]+(?:[-_.][a-z0-9]+)*))?\s*",
    re.IGNORECASE,
)
_STAGES = {"a": 0, "alpha": 0, "b": 1, "beta": 1, "c": 2, "rc": 2, "pre": 2, "preview": 2}


def _version_sort_key(version: str) -> tuple[Any, ...]:
    """Return the sort key of a version (PEP 440). Raise ValueError for an invalid version."""
    found = _FORM.fullmatch(version)
    if found is None:
        raise ValueError(f"Invalid version: {version!r}")
    release = [int(part) for part in found["release"].split(".")]
    while len(release) > 1 and release[-1] == 0:
        release.pop()
    before, after = (-1, 0), (9, 0)
    pre = (_STAGES[found["pre"].lower()], int(found["pre_number"] or 0)) if found["pre"] else after
    post = int(found["post"] or found["implied"] or 0) if found["is_post"] else -1
    dev = (0, int(found["dev"] or 0)) if found["is_dev"] else (1, 0)
    if found["is_dev"] and not found["pre"] and not found["is_post"]:
        pre = before
    parts = re.split(r"[-_.]", found["local"].lower()) if found["local"] else []
    local = [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]
    return int(found["epoch"] or 0), release, pre, post, dev, local


class TorchVersion(str):
    """A version that is a text, and compares as versions do: with texts, with sequences of numbers, and with objects
    whose `str` is a version.

    >>> TorchVersion("2.13.0+torchlite") >= "2.9", TorchVersion("2.13.0+torchlite") > (2, 13)
    (True, True)
    >>> TorchVersion("2.13.0+torchlite") == "2.13.0", str(TorchVersion("2.13.0a1"))
    (False, '2.13.0a1')
    """

    def _keys(self, other: Any) -> tuple[Any, Any] | None:
        if isinstance(other, (tuple, list)):
            other = ".".join(map(str, other))
        elif not isinstance(other, str) and not hasattr(other, "release"):  # a Version of `packaging` has that
            return None
        try:
            return _version_sort_key(str(self)), _version_sort_key(str(other))
        except ValueError:  # what is no version is a text
            return str(self), str(other)

    def __eq__(self, other: object) -> bool:
        keys = self._keys(other)
        return NotImplemented if keys is None else keys[0] == keys[1]

    def __ne__(self, other: object) -> bool:
        keys = self._keys(other)
        return NotImplemented if keys is None else keys[0] != keys[1]

    def __lt__(self, other: Any) -> bool:
        keys = self._keys(other)
        return NotImplemented if keys is None else keys[0] < keys[1]

    def __le__(self, other: Any) -> bool:
        keys = self._keys(other)
        return NotImplemented if keys is None else keys[0] <= keys[1]

    def __gt__(self, other: Any) -> bool:
        keys = self._keys(other)
        return NotImplemented if keys is None else keys[0] > keys[1]

    def __ge__(self, other: Any) -> bool:
        keys = self._keys(other)
        return NotImplemented if keys is None else keys[0] >= keys[1]

    __hash__ = str.__hash__


__version__ = TorchVersion("2.13.0+torchlite")


__dir__ = make_module_dir(globals())
