"""`GlobGroup`: patterns of dotted names or paths."""

from __future__ import annotations

import re
from collections.abc import Iterable

GlobPattern = str | Iterable[str]


class GlobGroup:
    """Patterns that a name matches, or not.

    A pattern has segments. In a segment ``*`` stands for any characters. The segment ``**`` stands for any number of
    segments.

    Args:
        include: One or several patterns, of which a name has to match one.
        exclude: Patterns that a name must not match. Default: none.
        separator: What separates segments. Default: a dot.

    Raises:
        ValueError: ``**`` is a part of a segment.

    Example:
        >>> group = torch.package.GlobGroup("torch.**", exclude="torch.nn")
        >>> group.matches("torch.nn.functional"), group.matches("torch.nn")
        (True, False)
    """

    def __init__(self, include: GlobPattern, *, exclude: GlobPattern = (), separator: str = "."):
        self._text = f"GlobGroup(include={include}, exclude={exclude})"
        self.separator = separator
        self.include = self._compile(include)
        self.exclude = self._compile(exclude)

    def __repr__(self) -> str:
        return self._text

    def matches(self, candidate: str) -> bool:
        """Returns whether a name matches a pattern of ``include`` and none of ``exclude``.

        Args:
            candidate: The name.

        Example:
            >>> torch.package.GlobGroup(["a.*", "b"]).matches("a.x")
            True
        """
        # Each segment begins with the separator, so that `**` can stand for none.
        path = self.separator + candidate
        return any(p.fullmatch(path) for p in self.include) and not any(p.fullmatch(path) for p in self.exclude)

    def _compile(self, patterns: GlobPattern) -> list[re.Pattern[str]]:
        listed = [patterns] if isinstance(patterns, str) else patterns
        return [re.compile("".join(map(self._translate, text.split(self.separator)))) for text in listed]

    def _translate(self, segment: str) -> str:
        begin, inner = re.escape(self.separator), f"[^{re.escape(self.separator)}]"
        if segment == "**":
            return f"(?:{begin}{inner}+)*"
        if "**" in segment:
            raise ValueError("** can only appear as an entire path segment")
        return begin + f"{inner}*".join(map(re.escape, segment.split("*")))
