"""`FileCheck`: checks that a text contains lines in a given order."""

from __future__ import annotations

from typing import Any

__all__ = ["FileCheck"]


class FileCheck:
    r"""Checks of a text in sequence, which `run` does.

    Example:
        >>> from torchlite.testing import FileCheck
        >>> FileCheck().check("add").check_not("mul").check_next("sub").run("add\nsub\n")
    """

    def __init__(self) -> None:
        self._checks: list[tuple[str, Any]] = []

    def _add_check(self, kind: str, *what: Any) -> FileCheck:
        self._checks.append((kind, what))
        return self

    def check(self, test_string: str) -> FileCheck:
        """Checks that a text comes after the previous match.

        Args:
            test_string: The text.
        """
        return self._add_check("check", test_string)

    def check_next(self, test_string: str) -> FileCheck:
        """Checks that a text is in the line after the previous match.

        Args:
            test_string: The text.
        """
        return self._add_check("next", test_string)

    def check_same(self, test_string: str) -> FileCheck:
        """Checks that a text comes after the previous match, in the same line.

        Args:
            test_string: The text.
        """
        return self._add_check("same", test_string)

    def check_not(self, test_string: str) -> FileCheck:
        """Checks that a text is absent between the previous and the next match.

        Args:
            test_string: The text.
        """
        return self._add_check("not", test_string)

    def check_dag(self, test_string: str) -> FileCheck:
        """Checks that a text comes after the previous match; several such checks match in any order.

        Args:
            test_string: The text.
        """
        return self._add_check("dag", test_string)

    def check_count(self, test_string: str, count: int, exactly: bool = False) -> FileCheck:
        """Checks that a text comes several times.

        Args:
            test_string: The text.
            count: How often it comes.
            exactly: Whether it may not come more often. Default: ``False``.
        """
        return self._add_check("count", test_string, count, exactly)

    def check_source_highlighted(self, test_string: str) -> FileCheck:
        """Checks that marks in the line below highlight a text.

        Args:
            test_string: The text.
        """
        return self._add_check("highlighted", test_string)

    def run(self, test_file: str) -> None:
        """Runs the checks.

        Args:
            test_file: The text that is checked.

        Raises:
            RuntimeError: A check fails, or there are no checks.
        """
        if not self._checks:
            raise RuntimeError("a FileCheck without checks")
        text, place = str(test_file), 0
        absent: list[str] = []
        dag_start = dag_end = None
        for kind, what in self._checks:
            if kind == "not":
                absent.append(what[0])
                continue
            if kind != "dag" and dag_end is not None:
                place, dag_start, dag_end = dag_end, None, None
            begin = place
            if kind == "count":
                for _ in range(what[1]):
                    first, place = self._find_text(text, what[0], place)
                if what[2] and what[0] in text[place:]:
                    raise RuntimeError(f"Expected to not find {what[0]!r} but found it: more than {what[1]} times")
                self._check_absent(text, absent, begin, first if what[1] else place)
            elif kind == "dag":
                dag_start = place if dag_start is None else dag_start
                first, end = self._find_text(text, what[0], dag_start)
                dag_end = max(end, dag_end or 0)
                self._check_absent(text, absent, dag_start, first)
            else:
                first, place = self._find_text(text, what[0], place)
                lines = text.count("\n", begin, first)
                if kind == "next" and lines != 1 or kind == "same" and lines:
                    raise RuntimeError(
                        f"Expected to find {what[0]!r} in the {kind} line, {lines} lines further on it is"
                    )
                if kind == "highlighted" and "~" not in text[place:].split("\n", 2)[1:2][0]:
                    raise RuntimeError(f"Expected to find {what[0]!r} highlighted but did not")
                self._check_absent(text, absent, begin, first)
            absent = []
        self._check_absent(text, absent, place if dag_end is None else dag_end, len(text))

    @staticmethod
    def _find_text(text: str, wanted: str, start: int) -> tuple[int, int]:
        place = text.find(wanted, start)
        if place < 0:
            raise RuntimeError(f"Expected to find {wanted!r} but did not find it\nSearched string:\n{text[start:]}")
        return place, place + len(wanted)

    @staticmethod
    def _check_absent(text: str, absent: list[str], start: int, end: int) -> None:
        for wanted in absent:
            if wanted in text[start:end]:
                raise RuntimeError(f"Expected to not find {wanted!r} but found it\nFrom CHECK-NOT: {wanted}")
