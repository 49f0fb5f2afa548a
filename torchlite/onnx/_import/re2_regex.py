"""RE2 regular expressions, matched in linear time by an NFA without backtracking."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from .resource_limits import check_steps

_MOST_REPEATS = 1000  # RE2's limit
_MOST_STATES = 2_500
_DEEPEST = 100
_CACHE_SIZE = 50_000  # maximum number of cached NFA states
_Test = Callable[[str], bool]


def _make_range_test(*ranges: str) -> _Test:
    """Return a test of a character against ranges such as "az", by binary search."""
    lows: list[str] = []
    highs: list[str] = []
    for low, high in sorted((r[0], r[1]) for r in ranges):
        if highs and low <= highs[-1]:
            highs[-1] = max(high, highs[-1])
        else:
            lows.append(low)
            highs.append(high)

    def test(c: str) -> bool:
        at = bisect_right(lows, c) - 1
        return at >= 0 and c <= highs[at]

    return test


_DIGIT, _WORD, _SPACE = (
    _make_range_test("09"),
    _make_range_test("09", "AZ", "az", "__"),
    _make_range_test("\t\n", "\f\r", "  "),
)
_CLASSES: dict[str, _Test] = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_POSIX: dict[str, _Test] = {
    "alnum": _make_range_test("09", "AZ", "az"),
    "alpha": _make_range_test("AZ", "az"),
    "ascii": _make_range_test("\x00\x7f"),
    "blank": _make_range_test("\t\t", "  "),
    "cntrl": _make_range_test("\x00\x1f", "\x7f\x7f"),
    "digit": _DIGIT,
    "graph": _make_range_test("!~"),
    "lower": _make_range_test("az"),
    "print": _make_range_test(" ~"),
    "punct": _make_range_test("!/", ":@", "[`", "{~"),
    "space": _make_range_test("\t\r", "  "),
    "upper": _make_range_test("AZ"),
    "word": _WORD,
    "xdigit": _make_range_test("09", "AF", "af"),
}
_SIMPLE_ESCAPES = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}


def _negate(test: _Test) -> _Test:
    return lambda c: not test(c)


def _make_case_insensitive(test: _Test) -> _Test:
    return lambda c: test(c) or test(c.lower()) or test(c.upper())


class RE2Pattern:
    """Pattern compiled to an NFA. Raise ValueError for invalid or too large patterns."""

    def __init__(self, text: str) -> None:
        self.text, self.at, self.depth = text, 0, 0
        self.flags = frozenset[str]()
        # By state: a character test, "split" or an assertion such as "^"; and the next states.
        self.states: list[tuple[Any, tuple[int, ...]]] = []
        self.tree = self._parse_alternatives()
        if self.at < len(text):
            raise self._pattern_error("a ) has no (")
        self.end = self._add_state("end")
        self.begin = self._build_states(self.tree, self.end)
        self.known: dict[tuple, frozenset[int]] = {}
        self.cached_states = 0

    # Parse tree nodes: ("char", test), ("at", assertion), ("all", parts), ("any", parts), ("times", part, a, b).

    def _pattern_error(self, why: str) -> ValueError:
        return ValueError(f"RegexFullMatch: the pattern {self.text[:100]!r}: {why}")

    def _peek(self, count: int = 1) -> str:
        return self.text[self.at : self.at + count]

    def _take_if_next(self, text: str) -> bool:
        found = self.text.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def _next_char(self) -> str:
        if self.at >= len(self.text):
            raise self._pattern_error("it ends too soon")
        self.at += 1
        return self.text[self.at - 1]

    def _parse_alternatives(self) -> tuple:
        self.depth += 1
        if self.depth > _DEEPEST:
            raise self._pattern_error(f"groups inside more than {_DEEPEST} others")
        kept, parts = self.flags, [self._parse_sequence()]
        while self._take_if_next("|"):
            parts.append(self._parse_sequence())
        self.flags, self.depth = kept, self.depth - 1
        return ("any", parts)

    def _parse_sequence(self) -> tuple:
        parts: list[tuple] = []
        while self.at < len(self.text) and self._peek() not in "|)":
            if self._take_if_next(r"\Q"):
                end = self.text.find(r"\E", self.at)
                end = len(self.text) if end < 0 else end
                parts += [self._parse_char(c) for c in self.text[self.at : end]]
                self.at = end
                self._take_if_next(r"\E")
                continue
            parts.append(self._parse_repetition(self._parse_atom()))
        return ("all", parts)

    def _parse_repetition(self, part: tuple) -> tuple:
        again = False
        while True:
            found = re.compile(r"[*+?]|\{(\d{1,9})(,?)(\d{0,9})\}").match(self.text, self.at)
            if found is None:
                return part
            if again:
                raise self._pattern_error("a repeat of a repeat")
            self.at, again = found.end(), True
            least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(found[0], (0, 0))
            if found[1]:
                least = int(found[1])
                most = int(found[3]) if found[3] else None if found[2] else least
                if max(least, most or 0) > _MOST_REPEATS or most is not None and most < least:
                    raise self._pattern_error(f"the repeat {found[0]}")
            self._take_if_next("?")  # greediness does not affect whether it matches
            part = ("times", part, least, most)

    def _parse_atom(self) -> tuple:
        c = self._next_char()
        if c == "(":
            return self._parse_group()
        if c == "[":
            return ("char", self._parse_class())
        if c == ".":
            return ("char", (lambda c: True) if "s" in self.flags else (lambda c: c != "\n"))
        if c in "^$":
            return (
                "at",
                {"^": "line begin", "$": "line end"}[c] if "m" in self.flags else {"^": "begin", "$": "end"}[c],
            )
        if c in "*+?":
            raise self._pattern_error(f"nothing that {c} repeats")
        if c == "\\":
            return self._parse_escape_atom()
        return self._parse_char(c)

    def _parse_char(self, c: str) -> tuple:
        test: _Test = lambda other: other == c
        return ("char", _make_case_insensitive(test) if "i" in self.flags else test)

    def _parse_group(self) -> tuple:
        kept = self.flags
        if self._take_if_next("?"):
            found = re.compile(r"P?<\w+>").match(self.text, self.at)
            flags = re.compile(r"([imsU]*)(?:-([imsU]+))?([:)])").match(self.text, self.at)
            if found is not None:
                self.at = found.end()
            elif flags is not None:
                self.at = flags.end()
                self.flags = frozenset((self.flags | set(flags[1])) - set(flags[2] or ""))
                if flags[3] == ")":  # applies to the rest of the enclosing group
                    return ("all", [])
            else:
                raise self._pattern_error(f"the group (?{self._peek()}")
        part = self._parse_alternatives()
        if not self._take_if_next(")"):
            raise self._pattern_error("a ( has no )")
        self.flags = kept
        return part

    def _parse_escape_atom(self) -> tuple:
        c = self._peek()
        place = {"A": "begin", "z": "end", "b": "word", "B": "no word"}.get(c)
        if place is not None:
            self.at += 1
            return ("at", place)
        test = self._parse_escape()
        return self._parse_char(test) if isinstance(test, str) else ("char", test)

    def _parse_escape(self) -> str | _Test:
        """Parse an escape: a character, or a class test."""
        c = self._next_char()
        if c.lower() in _CLASSES:
            return _CLASSES[c] if c in _CLASSES else _negate(_CLASSES[c.lower()])
        if c in "pP":
            name = self._next_char()
            if name == "{":
                end = self.text.find("}", self.at)
                if end < 0:
                    raise self._pattern_error("a class \\p{ has no }")
                name, self.at = self.text[self.at : end], end + 1
            negated, name = (c == "P") != name.startswith("^"), name.removeprefix("^")
            if end_of := re.fullmatch(r"[CLMNPSZ][a-z]?", name):
                kind = end_of[0]
                test: _Test = lambda c: unicodedata.category(c).startswith(kind)
                return _negate(test) if negated else test
            raise self._pattern_error(f"there is no class {name[:50]!r}")
        if c in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[c]
        number = re.compile(r"x([0-9A-Fa-f]{2})|x\{([0-9A-Fa-f]{1,6})\}|0[0-7]{0,2}|[1-7][0-7]{2}").match(
            self.text, self.at - 1)  # fmt: skip
        if number is not None:
            self.at = number.end()
            digits = number[1] or number[2]
            code = int(digits, 16) if digits else int(number[0], 8)
            if code <= 0x10FFFF:
                return chr(code)
        if c.isalnum():
            raise self._pattern_error(f"the escape \\{c}")
        return c

    def _parse_class(self) -> _Test:
        negated, first = self._take_if_next("^"), True
        ranges: set[str] = set()
        tests: dict[str, _Test] = {}  # shared by their text
        while first or self._peek() != "]":
            first = False
            posix = re.compile(r"\[:(\^?)(\w+):\]").match(self.text, self.at)
            if posix is not None:
                if posix[2] not in _POSIX:
                    raise self._pattern_error(f"there is no class {posix[0][:50]}")
                self.at = posix.end()
                tests[posix[0]] = _negate(_POSIX[posix[2]]) if posix[1] else _POSIX[posix[2]]
                continue
            begin = self.at
            low = self._parse_class_char()
            if not isinstance(low, str):
                tests[self.text[begin : self.at]] = low
                continue
            high: Any = low
            if self._peek() == "-" and self._peek(2) != "-]":
                self.at += 1
                high = self._parse_class_char()
                if not isinstance(high, str) or high < low:
                    raise self._pattern_error("a range of a class")
            ranges.add(low + high)
        self.at += 1
        parts = [_make_range_test(*ranges), *tests.values()]

        def test(c: str) -> bool:
            return any(one(c) for one in parts)

        whole = _make_case_insensitive(test) if "i" in self.flags else test
        return _negate(whole) if negated else whole

    def _parse_class_char(self) -> str | _Test:
        c = self._next_char()
        return self._parse_escape() if c == "\\" else c

    # -- tree to NFA, built backwards

    def _add_state(self, kind: Any, *nexts: int) -> int:
        if len(self.states) >= _MOST_STATES:
            raise self._pattern_error(f"more than {_MOST_STATES} states")
        self.states.append((kind, nexts))
        return len(self.states) - 1

    def _build_states(self, part: tuple, then: int) -> int:
        kind, what = part[:2]
        if kind in ("char", "at"):
            return self._add_state(what, then)
        if kind == "all":
            for inner in reversed(what):
                then = self._build_states(inner, then)
            return then
        if kind == "any":
            return self._add_state("split", *[self._build_states(inner, then) for inner in what])
        least, most = part[2:]
        if most is None:
            again = self._add_state("split")
            self.states[again] = ("split", (self._build_states(what, again), then))
            then = again
        else:
            after = then
            for _ in range(most - least):
                then = self._add_state("split", self._build_states(what, then), after)
        for _ in range(least):
            then = self._build_states(what, then)
        return then

    # -- matching: simulate the set of reachable states

    def matches(self, text: str) -> bool:
        """True if the pattern matches the entire text."""
        check_steps("RegexFullMatch", 1 + len(text) // 8)
        before, now = "", frozenset([self.begin])
        for c in text:
            key = (now, before and _WORD(before), before == "\n", not before, c)
            then = self.known.get(key)
            if then is None:
                check_steps("RegexFullMatch", 1 + len(now) // 2)
                reached = self._reachable_states(now, before, c)
                then = frozenset(n for s in reached if callable(self.states[s][0]) and self.states[s][0](c)
                                 for n in self.states[s][1])  # fmt: skip
                self.cached_states += len(now) + len(then)
                if self.cached_states > _CACHE_SIZE:
                    self.known.clear()
                    self.cached_states = 0
                self.known[key] = then
            if not then:
                return False
            before, now = c, then
        return self.end in self._reachable_states(now, before, "")

    def _reachable_states(self, begin: frozenset[int], before: str, after: str) -> set[int]:
        """Return the states reachable without input between two characters ("" at the ends)."""
        found, waiting = set(begin), list(begin)
        word = bool(before and _WORD(before)) != bool(after and _WORD(after))
        holds = {
            "split": True, "begin": not before, "end": not after, "line begin": before in ("", "\n"),
            "line end": after in ("", "\n"), "word": word, "no word": not word,
        }  # fmt: skip
        while waiting:
            kind, nexts = self.states[waiting.pop()]
            if not callable(kind) and holds[kind]:
                new = [n for n in nexts if n not in found]
                found.update(new)
                waiting += new
        return found
