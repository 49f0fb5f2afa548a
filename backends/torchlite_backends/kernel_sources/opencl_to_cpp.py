"""Translation of kernel sources to C++ programs for the CPU.

A program is one class whose methods are the kernels, so that work-item indices are its members. An entry per kernel
runs a range of work-groups. C++ lacks OpenCL's vector components (`v.lo`) and `c ? a : b` over vectors: both are
rewritten.
"""

from __future__ import annotations

import re

from .c_preamble import CPP
from .scan import SHIFTS

_ENTRY = """
extern "C" __attribute__((visibility("default"))) int run_{name}(const void* given, const int* sizes,
    cc::cl_long begin, cc::cl_long end) {{
    return decltype(cc::entry_of(&cc::Program::{name}))::run<&cc::Program::{name}>(
        cc::UpTo<cc::count_of(&cc::Program::{name})>(), given, sizes, begin, end);
}}
// What several threads call at once: parts of all work-groups, each taken by one of them.
extern "C" __attribute__((visibility("default"))) int share_{name}(const void* given, const int* sizes,
    cc::cl_long count, cc::cl_long parts, int* taken) {{
    int failed = 0;
    for (cc::cl_long k; (k = __atomic_fetch_add(taken, 1, __ATOMIC_RELAXED)) < parts;)
        failed |= run_{name}(given, sizes, count * k / parts, count * (k + 1) / parts);
    return failed;
}}
"""


_KERNELS = re.compile(r"\bKERNEL\b(?:\s+\w+(?:\([^()]*\))?)*?\s+void\s+(\w+)\s*\(")


def list_kernel_names(text: str) -> list[str]:
    """Return the names of a source's kernels."""
    return list(dict.fromkeys(_KERNELS.findall(text)))


def to_cpp_program(text: str) -> str:
    """Return the C++ program of a kernel source with its types and definitions, which follows this preamble."""
    entries = "".join(_ENTRY.format(name=name) for name in list_kernel_names(text))
    base = "Streaming" if "TO_ST16(o_" in text else "Work"  # each element of a pointwise result is written once
    return f'{CPP}struct Program : {base} {{\n#line 1 "kernel"\n{translate_vectors(text)}\n}};\n}}\n{entries}'


# Shifting the elements of a vector is one instruction.
_MOVED = [
    (re.compile(r"\(\w+16\)\(" + re.sub(r"\\\$T(\d)", r"\\w+\1", re.escape(parts)) + r"\)"), f"a.moved<{count}>(one)")
    for count, parts in SHIFTS.items()
]
_PARTS = (
    (re.compile(r"\.(even|odd)\s*=(?!=)\s*([^;]+);"), lambda m: f".set_every_other<{int(m[1] == 'odd')}>({m[2]});"),
    (re.compile(r"\.(even|odd)\b"), lambda m: f".every_other<{int(m[1] == 'odd')}>()"),
    (re.compile(r"\.lo\b"), lambda m: ".lower()"),
    (re.compile(r"\.hi\b"), lambda m: ".upper()"),
    (re.compile(r"(?<!\bg)\.s([0-9a-f])\b"), lambda m: f"[{int(m[1], 16)}]"),
    (re.compile(r"\.s([0-9a-f]{2,})\b"), lambda m: f".part<{16 * int(m[1][0], 16) + len(m[1])}>()"),
)
_LITERAL = re.compile(r"\(((?:u?char|u?short|u?int|u?long|float|double)(?:2|4|8|16))\)\(")
_TOKEN = re.compile(r"\\\n|\n|//[^\n]*|/\*.*?\*/|[<>=!]=|\|\||&&|\w+(?:\.\w+)*|\s+|.", re.S)
_OPEN, _CLOSE = "([{", ")]}"
_COSTLY = frozenset(("exp", "exp2", "expm1", "log", "log1p"))  # functions that a vector may be spared
_BEGINNERS = frozenset((",", ";", "=", ":", "}", "return", "else"))  # tokens before an expression


def translate_vectors(text: str) -> str:
    """Translate vector components to function calls, and `c ? a : b` to a call of `choose_of`, which also takes
    vectors.
    """
    for pattern, moved in _MOVED:
        text = pattern.sub(moved, text)
    for pattern, to in _PARTS:
        text = pattern.sub(to, text)
    text = _LITERAL.sub(r"\1(", text)
    if "?" not in text:
        return text
    pieces = re.findall(r"[ \t]*#(?:[^\n\\]|\\\n|\\.)*|(?:[^\n]*\n?)", text)
    done: list[str] = []
    code = ""
    for piece in pieces:
        if piece.lstrip(" \t").startswith("#"):  # a macro's body is a separate expression
            done += [_replace_conditionals(code), _translate_directive(piece)]
            code = ""
        else:
            code += piece
    return "".join([*done, _replace_conditionals(code)])


_DEFINITION = re.compile(r"(\s*#\s*define\s+\w+(?:\([^()]*\))?)(.*)", re.S)


def _translate_directive(text: str) -> str:
    found = _DEFINITION.fullmatch(text)
    return found[1] + _replace_conditionals(found[2]) if found else text


def _replace_conditionals(text: str) -> str:
    return "".join(_rewrite_tokens(_TOKEN.findall(text))) if "?" in text else text


def _rewrite_tokens(tokens: list[str]) -> list[str]:
    """Return tokens of a balanced text with every conditional expression as a call of `choose_of`, or of
    `choose_first_of` where the second value alone takes long.
    """
    out: list[str] = []  # the expression so far, from `start` on
    start, at = 0, 0
    while at < len(tokens):
        token = tokens[at]
        if token in _OPEN:
            end = _find_closing(tokens, at)
            out += [token, *_rewrite_tokens(tokens[at + 1 : end]), tokens[end] if end < len(tokens) else ""]
            if token == "{":
                start = len(out)
            at = end + 1
            continue
        if token == "?":
            colon = _find_colon(tokens, at)
            end = _find_operand_end(tokens, colon)
            condition = out[start:]
            lead = _count_leading(condition)
            rest, condition = condition[:lead], condition[lead:]
            a, b = _rewrite_tokens(tokens[at + 1 : colon]), _rewrite_tokens(tokens[colon + 1 : end])
            spares = not _COSTLY.isdisjoint(b) and _COSTLY.isdisjoint(a)
            out[start:] = [
                *rest,
                "choose_first_of((" if spares else "choose_of((",
                *condition,
                "), LATER { return ",
                *a,
                "; }, LATER { return ",
                *b,
                "; })",
            ]
            at = end
            continue
        out.append(token)
        if token in _BEGINNERS:
            start = len(out)
        at += 1
    return out


def _count_leading(tokens: list[str]) -> int:
    """Return the number of leading tokens that are space, or the rest of an assignment like +=."""
    count = 0
    while count < len(tokens) and (tokens[count].isspace() or tokens[count].startswith(("\\\n", "//", "/*"))):
        count += 1
    return count


def _find_closing(tokens: list[str], at: int) -> int:
    depth = 0
    for k in range(at, len(tokens)):
        if tokens[k] in _OPEN:
            depth += 1
        elif tokens[k] in _CLOSE:
            depth -= 1
            if not depth:
                return k
    return len(tokens)


def _find_colon(tokens: list[str], question: int) -> int:
    """Return the colon of a question mark."""
    depth = nested = 0
    for k in range(question + 1, len(tokens)):
        token = tokens[k]
        if token in _OPEN:
            depth += 1
        elif token in _CLOSE:
            depth -= 1
        elif not depth and token == "?":
            nested += 1
        elif not depth and token == ":":
            if not nested:
                return k
            nested -= 1
    raise ValueError(f"a question mark without its colon: {''.join(tokens)}")


def _find_operand_end(tokens: list[str], colon: int) -> int:
    """Return the end of a conditional expression's last operand."""
    depth = nested = 0
    for k in range(colon + 1, len(tokens)):
        token = tokens[k]
        if token in _OPEN:
            depth += 1
        elif token in _CLOSE:
            depth -= 1
        elif depth:
            continue
        elif token == "?":
            nested += 1
        elif token == ":" and nested:
            nested -= 1
        elif token in (",", ";", ":"):
            return k
    return len(tokens)
