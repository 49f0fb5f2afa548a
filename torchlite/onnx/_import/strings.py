"""ONNX string ops on NumPy object arrays."""

from __future__ import annotations

import math
import unicodedata
from typing import Any

import numpy as np

import torchlite as torch
from torchlite import Tensor

from ..._serialization.pickle_costs import index_of_keys
from .op_registry import Ints, op
from .re2_regex import RE2Pattern
from .resource_limits import check_broadcast, check_elements, check_objects, check_steps, check_work


def string_array(values: Any, shape: Any) -> np.ndarray:
    """Return a string array."""
    items = list(values)
    out = np.empty(len(items), object)
    out[:] = items
    return out.reshape(shape)


@op("StringConcat")
def string_concat(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    check_broadcast("StringConcat", x, y)
    a, b = np.broadcast_arrays(x, y)
    # Broadcasting repeats strings, so count both sides.
    check_elements("StringConcat", 16 * a.size + sum(map(len, a.ravel())) + sum(map(len, b.ravel())))
    return string_array((p + q for p, q in zip(a.ravel(), b.ravel(), strict=True)), a.shape)


@op("StringSplit")
def string_split(x: np.ndarray, *, delimiter: str | None = None, maxsplit: int | None = None, outputs: int = 1) -> Any:
    check_work(
        "StringSplit", 128 * check_elements("StringSplit", sum(len(item) // 2 + 1 for item in x.ravel()), each=16)
    )
    parts = [item.split(delimiter or None, -1 if maxsplit is None else maxsplit) for item in x.ravel()]
    width = max(map(len, parts), default=0)
    check_elements("StringSplit", len(parts), width, each=4)
    out = string_array((word for row in parts for word in [*row, *[""] * (width - len(row))]), (*x.shape, width))
    counts = torch.tensor([len(row) for row in parts], dtype=torch.int64).reshape(x.shape)
    return out if outputs == 1 else (out, counts)


@op("RegexFullMatch")
def regex_full_match(x: np.ndarray, *, pattern: str) -> Tensor:
    found = RE2Pattern(pattern)
    return torch.tensor([found.matches(item) for item in x.ravel()], dtype=torch.bool).reshape(x.shape)


def _strip_accents(word: str) -> str:
    """Return a word without accents."""
    if word.isascii():
        return word
    check_elements(
        "StringNormalizer", 18 * len(word), each=16
    )  # maximum expansion of a character, and cost of an object
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


@op("StringNormalizer")
def string_normalizer(
    x: np.ndarray, *, case_change_action: str = "NONE", is_case_sensitive: int = 0, locale: str = "",
    stopwords: Any = None,
) -> np.ndarray:  # fmt: skip
    change = {"LOWER": str.lower, "UPPER": str.upper}.get(case_change_action, str)
    same = str if is_case_sensitive else str.lower
    stops = {same(word) for word in stopwords or ()}
    kept = [_strip_accents(change(word)) for word in x.ravel() if same(word) not in stops] or [""]
    return string_array(kept, (len(kept),) if x.ndim == 1 else (1, len(kept)))


@op("TfIdfVectorizer")
def tf_idf(
    x: Any, *, max_gram_length: int, max_skip_count: int, min_gram_length: int, mode: str, ngram_counts: Ints,
    ngram_indexes: Ints, pool_int64s: Any = None, pool_strings: Any = None, weights: Any = None,
) -> Tensor:  # fmt: skip
    pool = list(pool_strings if pool_int64s is None else pool_int64s)
    if sorted(ngram_counts) != ngram_counts or not 0 <= ngram_counts[0] <= ngram_counts[-1] <= len(pool):
        raise ValueError(f"TfIdfVectorizer: ngram_counts {str(ngram_counts)[:100]} of {len(pool)} in the pool")
    ends = [*ngram_counts[1:], len(pool)]
    grams = enumerate(zip(ngram_counts, ends, strict=True), 1)
    places = index_of_keys([tuple(pool[at : at + size]) for size, ends in grams for at in range(*ends, size)])
    check_objects("TfIdfVectorizer", math.prod(x.shape) // 4)
    rows = x.tolist() if x.ndim == 2 else [x.tolist()]
    columns = max(ngram_indexes, default=-1) + 1
    check_elements("TfIdfVectorizer", len(rows), columns)
    out = np.zeros((len(rows), columns), np.float32)
    for i, row in enumerate(rows):
        for size in range(max(min_gram_length, 1), min(max_gram_length, len(ngram_counts), len(row)) + 1):
            # Longer skips leave the row.
            widest = min(max_skip_count + 1, (len(row) - 1) // (size - 1)) if size > 1 else 1
            check_steps("TfIdfVectorizer", widest * len(row) * (1 + size // 8))
            for skip in range(1, widest + 1):
                for begin in range(len(row) - (size - 1) * skip):
                    entry = places.get(tuple(row[begin : begin + (size - 1) * skip + 1 : skip]))
                    if entry is not None:
                        out[i, ngram_indexes[entry]] += 1
    factor = np.ones(out.shape[1], np.float32)
    if weights is not None:
        for at, place in enumerate(ngram_indexes):
            factor[place] = weights[at]
    if mode != "TF":
        out = (out > 0) * factor if mode == "IDF" else out * factor
    return torch.from_numpy(out.astype(np.float32) if x.ndim == 2 else out[0].astype(np.float32))
