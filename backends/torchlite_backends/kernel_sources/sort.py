"""Sort, selection and search kernels. An element is an Item: its key (an unsigned number in sort order) above its
index.
"""

from __future__ import annotations

import functools

from .reduce import COMPUTE_TYPES, compute_kind

# Common arguments: rows of `length` elements that are `inner` apart.
GEOMETRY = r"""
typedef struct { int rows, length, inner, width, keep, parts, chunk, items; } Geometry;
FUNCTION int row_base(const Geometry g, int row, int length) {
    return (row / g.inner) * length * g.inner + row % g.inner;
}
"""
_ITEM32 = r"""
typedef uint Key;
typedef ulong Item;
#define DIGITS 4
#define KEY(e) ((uint)((e) >> 32))
#define PLACE(e) ((int)(uint)(e))
#define MAKE(key, place) (((ulong)(key) << 32) | (uint)(place))
#define LESS(a, b) ((a) < (b))
#define LAST_ITEM 0xffffffffffffffffUL
"""
_ITEM64 = r"""
typedef ulong Key;
typedef ulong2 Item;
#define DIGITS 8
#define KEY(e) ((e).x)
#define PLACE(e) ((int)(e).y)
#define MAKE(key, place) (VEC2(ulong2, key, (ulong)(place)))
#define LESS(a, b) ((a).x < (b).x || ((a).x == (b).x && (a).y < (b).y))
#define LAST_ITEM (VEC2(ulong2, 0xffffffffffffffffUL, 0xffffffffffffffffUL))
"""
_KEYS = {
    "i8": "FUNCTION uint key_of(int v) { return (uint)(v + 128); }",
    "i16": "FUNCTION uint key_of(int v) { return (uint)(v + 32768); }",
    "f32": "FUNCTION uint key_of(float v) { uint u = as_uint(v == 0 ? 0.0f : v); return v != v ? 0xffffffffu : (u >> "
    "31) ? ~u : (u | 0x80000000u); }",
    "f64": "FUNCTION ulong key_of(double v) { ulong u = as_ulong(v == 0 ? 0.0 : v); return v != v ? "
    "0xffffffffffffffffUL : (u >> 63) ? ~u : (u | 0x8000000000000000UL); }",
    "i32": "FUNCTION uint key_of(int v) { return (uint)v ^ 0x80000000u; }",
    "i64": "FUNCTION ulong key_of(long v) { return (ulong)v ^ 0x8000000000000000UL; }",
    "u64": "FUNCTION ulong key_of(ulong v) { return v; }",
}

# A stable radix sort of each row by bytes; `spare` is as long as the rows of all work-items. Short rows are sorted by
# insertion.
_ROWS = r"""
KERNEL void rows(IN(T, x), OUT(Item, out), OUT(Item, spare), const Geometry g) {
    int count[DIGITS][256];
    GLOBAL Item* other = AT(spare) + ITEM * g.length;
    for (int row = ITEM; row < g.rows; row += g.items) {
        GLOBAL const T* p = AT(x) + row_base(g, row, g.length);
        GLOBAL Item* home = AT(out) + row * g.length;
        if (g.length <= 48) {
            for (int i = 0; i < g.length; i++) {
                Item e = MAKE(ORDER(key_of(T_LD(p, i * g.inner))), i);
                int j = i;
                for (; j > 0 && KEY(e) < KEY(home[j - 1]); j--) { home[j] = home[j - 1]; }
                home[j] = e;
            }
            continue;
        }
        for (int d = 0; d < DIGITS; d++) { for (int j = 0; j < 256; j++) { count[d][j] = 0; } }
        for (int i = 0; i < g.length; i++) {
            Key key = ORDER(key_of(T_LD(p, i * g.inner)));
            home[i] = MAKE(key, i);
            for (int d = 0; d < DIGITS; d++) { count[d][(key >> (8 * d)) & 255]++; }
        }
        GLOBAL Item* from = home;
        GLOBAL Item* to = other;
        for (int d = 0; d < DIGITS; d++) {
            if (count[d][(KEY(from[0]) >> (8 * d)) & 255] == g.length) { continue; }
            for (int j = 0, sum = 0; j < 256; j++) { int n = count[d][j]; count[d][j] = sum; sum += n; }
            for (int i = 0; i < g.length; i++) { Item e = from[i]; to[count[d][(KEY(e) >> (8 * d)) & 255]++] = e; }
            GLOBAL Item* t = from; from = to; to = t;
        }
        if (from != home) { for (int i = 0; i < g.length; i++) { home[i] = from[i]; } }
    }
}
"""
# The same for long rows, a byte a launch: parts of a row are counted, the counts are added up, and each part's elements
# are put where they belong.
_LONG = r"""
KERNEL void make(IN(T, x), OUT(Item, out), const Geometry g) {
    int i = ITEM;
    if (i < g.rows * g.width) {
        int row = i / g.width, at = i % g.width;
        out_[i] = at < g.length ? MAKE(ORDER(key_of(T_LD(AT(x), row_base(g, row, g.length) + at * g.inner))), at)
            : LAST_ITEM;
    }
}
KERNEL void tally(IN(Item, from), OUT(int, counts), const Geometry g, const int shift) {
    int count[256], row = ITEM / g.parts, part = ITEM % g.parts, end = min((part + 1) * g.chunk, g.length);
    if (row >= g.rows) { return; }
    GLOBAL const Item* p = from_ + row * g.length;
    for (int j = 0; j < 256; j++) { count[j] = 0; }
    for (int i = part * g.chunk; i < end; i++) { count[(KEY(p[i]) >> shift) & 255]++; }
    for (int j = 0; j < 256; j++) { counts_[(row * 256 + j) * g.parts + part] = count[j]; }
}
KERNEL void scatter(IN(Item, from), IN(int, counts), IN(int, ends), OUT(Item, to), const Geometry g, const int shift) {
    int count[256], row = ITEM / g.parts, part = ITEM % g.parts, end = min((part + 1) * g.chunk, g.length);
    if (row >= g.rows) { return; }
    GLOBAL const Item* p = from_ + row * g.length;
    for (int j = 0; j < 256; j++) { int k = (row * 256 + j) * g.parts + part; count[j] = ends_[k] - counts_[k]; }
    for (int i = part * g.chunk; i < end; i++) {
        Item e = p[i]; to_[row * g.length + count[(KEY(e) >> shift) & 255]++] = e;
    }
}
"""
# A bitonic network over rows of a power of two: steps within SPAN elements in local memory, wider ones a launch each.
_NETWORK = r"""
#define EXCHANGE(a, b, up) { Item one = a, two = b; if (LESS(two, one) == (up)) { a = two; b = one; } }
KERNEL void near(OUT(Item, items), const int total, const int mask, const int first, const int last) {
    LOCAL_ARRAY(Item, held, SPAN);
    int base = BLOCK * SPAN;
    for (int i = THREAD; i < SPAN; i += THREADS) { held[i] = base + i < total ? items_[base + i] : LAST_ITEM; }
    BARRIER;
    for (int size = first; size <= last; size <<= 1) {
        for (int step = min(size, SPAN) >> 1; step; step >>= 1) {
            for (int j = THREAD; j < SPAN / 2; j += THREADS) {
                int i = 2 * j - (j & (step - 1)), up = (((base + i) & size & mask) == 0);
                EXCHANGE(held[i], held[i + step], up)
            }
            BARRIER;
        }
    }
    for (int i = THREAD; i < SPAN && base + i < total; i += THREADS) { items_[base + i] = held[i]; }
}
KERNEL void far(OUT(Item, items), const int total, const int mask, const int size, const int step) {
    int j = ITEM;
    if (j < total / 2) {
        int i = 2 * j - (j & (step - 1)), up = ((i & size & mask) == 0);
        EXCHANGE(items_[i], items_[i + step], up)
    }
}
"""
# Elements and indices of the first `keep` items of each row.
_WRITE = r"""
KERNEL void write(IN(T, x), IN(Item, items), OUT(T, values), OUT(long, places), const Geometry g) {
    int row = ITEM / g.parts, part = ITEM % g.parts, end = min((part + 1) * g.chunk, g.keep);
    if (row >= g.rows) { return; }
    GLOBAL const T* p = AT(x) + row_base(g, row, g.length);
    int to = row_base(g, row, g.keep);
    for (int j = part * g.chunk; j < end; j++) {
        int place = PLACE(items_[row * g.width + j]);
        T_ST(values_, to + j * g.inner, T_LD(p, place * g.inner));
        places_[to + j * g.inner] = place;
    }
}
"""
# The first items of parts of rows, by insertion into a list that few elements reach.
_SELECT = r"""
#define INSERT(best, keep, e) { \
    if (LESS(e, best[keep - 1])) { \
        int j_ = keep - 1; \
        for (; j_ > 0 && LESS(e, best[j_ - 1]); j_--) { best[j_] = best[j_ - 1]; } \
        best[j_] = e; \
    } \
}
KERNEL void select_parts(IN(T, x), OUT(Item, found), const Geometry g) {
    Item best[MOST];
    int row = ITEM / g.parts, part = ITEM % g.parts, i = part * g.chunk, end = min(i + g.chunk, g.length),
        filled = min(end, i + g.keep);
    if (row >= g.rows) { return; }
    GLOBAL const T* p = AT(x) + row_base(g, row, g.length);
    for (int j = 0; j < g.keep; j++) { best[j] = LAST_ITEM; }
    for (; i < filled; i++) { Item e = MAKE(ORDER(key_of(T_LD(p, i * g.inner))), i); INSERT(best, g.keep, e) }
#ifdef BEYOND
    W limit = i < end ? T_LD(p, PLACE(best[g.keep - 1])) : 0;
    for (; i + 16 <= end; i += 16) {
        W_16 v = convert_W16(T_LD16(p, i));
        if (any(!(v BEYOND (W_16)(limit)))) {
            for (int k = i; k < i + 16; k++) {
                Item e = MAKE(ORDER(key_of(T_LD(p, k))), k); INSERT(best, g.keep, e)
            }
            limit = T_LD(p, PLACE(best[g.keep - 1]));
        }
    }
#endif
    for (; i < end; i++) { Item e = MAKE(ORDER(key_of(T_LD(p, i * g.inner))), i); INSERT(best, g.keep, e) }
    for (int j = 0; j < g.keep; j++) { found_[(row * g.parts + part) * g.keep + j] = best[j]; }
}
KERNEL void select_all(OUT(Item, found), const Geometry g) {
    Item best[MOST];
    int row = ITEM;
    if (row >= g.rows) { return; }
    GLOBAL Item* p = found_ + row * g.parts * g.keep;
    for (int j = 0; j < g.keep; j++) { best[j] = p[j]; }
    for (int k = g.keep; k < g.parts * g.keep; k++) { Item e = p[k]; INSERT(best, g.keep, e) }
    for (int j = 0; j < g.keep; j++) { p[j] = best[j]; }
}
"""
# The first items of short rows, by the algorithms of libstdc++ with which PyTorch selects on the CPU: `nth_element` and
# `sort`, or `partial_sort`. Their steps determine the order of equal elements.
_SHORT = r"""
#define BEFORE(a, b) (KEY(a) < KEY(b))
#define SWAP(a, b) { Item held_ = a; a = b; b = held_; }
FUNCTION void insertion_sort(Item* e, int first, int last) {
    for (int i = first + 1; i < last; i++) {
        Item value = e[i];
        int j = i;
        for (; j > first && BEFORE(value, e[j - 1]); j--) { e[j] = e[j - 1]; }
        e[j] = value;
    }
}
FUNCTION int partition(Item* e, int first, int last) {
    int a = first + 1, b = first + (last - first) / 2, c = last - 1, median;
    if (BEFORE(e[a], e[b])) { median = BEFORE(e[b], e[c]) ? b : BEFORE(e[a], e[c]) ? c : a; }
    else { median = BEFORE(e[a], e[c]) ? a : BEFORE(e[b], e[c]) ? c : b; }
    SWAP(e[first], e[median])
    Item pivot = e[first];
    for (int low = first + 1, high = last; ; low++) {
        while (BEFORE(e[low], pivot)) { low++; }
        high--;
        while (BEFORE(pivot, e[high])) { high--; }
        if (low >= high) { return low; }
        SWAP(e[low], e[high])
    }
}
FUNCTION void adjust_heap(Item* e, int hole, int count, Item value) {
    int top = hole, child = hole;
    while (child < (count - 1) / 2) {
        child = 2 * (child + 1);
        if (BEFORE(e[child], e[child - 1])) { child--; }
        e[hole] = e[child];
        hole = child;
    }
    if (count % 2 == 0 && child == (count - 2) / 2) {
        child = 2 * child + 1;
        e[hole] = e[child];
        hole = child;
    }
    for (int parent = (hole - 1) / 2; hole > top && BEFORE(e[parent], value); parent = (hole - 1) / 2) {
        e[hole] = e[parent];
        hole = parent;
    }
    e[hole] = value;
}
FUNCTION void heap_select(Item* e, int count, int last) {
    if (count > 1) { for (int i = (count - 2) / 2; i >= 0; i--) { adjust_heap(e, i, count, e[i]); } }
    for (int i = count; i < last; i++) {
        if (BEFORE(e[i], e[0])) { Item value = e[i]; e[i] = e[0]; adjust_heap(e, 0, count, value); }
    }
}
FUNCTION void sort_heap(Item* e, int count) {
    while (count > 1) { count--; Item value = e[count]; e[count] = e[0]; adjust_heap(e, 0, count, value); }
}
FUNCTION int log_of(int n) { int k = 0; for (; n > 1; n >>= 1) { k++; } return k; }
KERNEL void select_short(IN(T, x), OUT(Item, found), const Geometry g) {
    Item e[LONGEST];
    int row = ITEM, first = 0, last = g.length, keep = g.keep, depth = 2 * log_of(g.length), waiting = 0;
    int ends[16], starts[16], depths[16];
    if (row >= g.rows) { return; }
    GLOBAL const T* p = AT(x) + row_base(g, row, g.length);
    for (int i = 0; i < last; i++) { e[i] = MAKE(ORDER(key_of(T_LD(p, i * g.inner))), i); }
    if (64 * keep <= last) {
        heap_select(e, keep, last);
        sort_heap(e, keep);
    } else {
        for (; last - first > 3; depth--) {
            if (depth == 0) {
                heap_select(e + first, keep - first, last - first);
                SWAP(e[first], e[keep - 1])
                first = last;
                break;
            }
            int cut = partition(e, first, last);
            if (cut < keep) { first = cut; } else { last = cut; }
        }
        insertion_sort(e, first, last);
        first = 0; last = keep - 1; depth = 2 * log_of(keep - 1);
        for (;;) {
            for (; last - first > 16; ) {
                if (depth == 0) {
                    heap_select(e + first, last - first, last - first);
                    sort_heap(e + first, last - first);
                    break;
                }
                depth--;
                int cut = partition(e, first, last);
                starts[waiting] = cut; ends[waiting] = last; depths[waiting] = depth;
                waiting++;
                last = cut;
            }
            if (waiting == 0) { break; }
            waiting--;
            first = starts[waiting]; last = ends[waiting]; depth = depths[waiting];
        }
        insertion_sort(e, 0, keep - 1);
    }
    for (int j = 0; j < keep; j++) { found_[row * keep + j] = e[j]; }
}
"""
# The element of a rank in each row. RANK 0: `keep` is the rank; 1: the median, or the first NaN; 2: the median without
# NaN.
_RANK = r"""
KERNEL void rank(IN(T, x), OUT(T, values), OUT(long, places), OUT(Item, spare), const Geometry g) {
    int count[256];
    GLOBAL Item* left = AT(spare) + ITEM * g.length;
    for (int row = ITEM; row < g.rows; row += g.items) {
        GLOBAL const T* p = AT(x) + row_base(g, row, g.length);
        int n = g.length, rank = g.keep, nans = 0, place = 0;
        for (int j = 0; j < 256; j++) { count[j] = 0; }
        for (int i = 0; i < n; i++) {
            Key key = key_of(T_LD(p, i * g.inner));
            left[i] = MAKE(key, i);
            count[key >> (8 * DIGITS - 8)]++;
#if RANK > 0
            nans += IS_NAN(key);
#endif
        }
#if RANK > 0
        int counted = RANK == 2 ? max(n - nans, nans == n) : n;
        rank = RANK == 1 && nans ? n - nans : (counted - 1) / 2;
#endif
        for (int d = DIGITS - 1; ; d--) {
            int j = 0, kept = 0;
            for (; rank >= count[j]; j++) { rank -= count[j]; }
            for (int i = 0; i < n; i++) { Item e = left[i]; left[kept] = e; kept += ((KEY(e) >> (8 * d)) & 255) == j; }
            n = kept;
            if (d == 0 || n == 1) { break; }
            for (int j = 0; j < 256; j++) { count[j] = 0; }
            for (int i = 0; i < n; i++) { count[(KEY(left[i]) >> (8 * d - 8)) & 255]++; }
        }
        place = PLACE(left[rank]);
        T_ST(values_, row, T_LD(p, place * g.inner));
        places_[row] = place;
    }
}
"""
# The same out of sorted items.
_PICK = r"""
KERNEL void pick(IN(T, x), IN(Item, items), OUT(T, values), OUT(long, places), const Geometry g) {
    int row = ITEM, rank = g.keep;
    if (row >= g.rows) { return; }
    GLOBAL const T* p = AT(x) + row_base(g, row, g.length);
    GLOBAL const Item* q = items_ + row * g.width;
#if RANK == 1 || RANK == 2
    int low = 0, high = g.length;
    while (low < high) {
        int middle = (low + high) / 2;
        W v = T_LD(p, PLACE(q[middle]) * g.inner);
        if (v != v) { high = middle; } else { low = middle + 1; }
    }
    rank = RANK == 2 ? max((low - 1) / 2, 0) : low < g.length ? low : (g.length - 1) / 2;
#endif
#if RANK == 3
    int longest = 0;
    for (int i = 0, run = 0; i < g.length; i++) {
        run = i > 0 && SAME(q[i], q[i - 1]) ? run + 1 : 1;
        if (run > longest) { longest = run; rank = i; }
    }
#endif
    int place = PLACE(q[rank]);
    T_ST(values_, row, T_LD(p, place * g.inner));
    places_[row] = place;
}
"""
_SEARCH = r"""
KERNEL void search(IN(T, keys), IN(long, sorter), IN(T, values), OUT(O, out), const int rows, const int per_row,
    const int length, const int same) {
    int i = ITEM;
    if (i >= rows * per_row) { return; }
    W v = T_LD(AT(values), i);
    int base = same ? 0 : (i / per_row) * length, low = 0, high = length;
    while (low < high) {
        int middle = (low + high) / 2;
#ifdef SORTED_BY
        W key = T_LD(AT(keys), base + (int)AT(sorter)[base + middle]);
#else
        W key = T_LD(AT(keys), base + middle);
#endif
        int beyond = !(key BEYOND v);
        low = beyond ? middle + 1 : low;
        high = beyond ? high : middle;
    }
    AT(out)[i] = low;
}
"""
_AMONG = r"""
KERNEL void among(IN(T, x), IN(Item, items), OUT(uchar, out), const int count, const int length, const int invert) {
    int i = ITEM;
    if (i >= count) { return; }
    W v = T_LD(AT(x), i);
    Key key = key_of(v);
    int low = 0, high = length;
    while (low < high) {
        int middle = (low + high) / 2;
        int beyond = KEY(items_[middle]) < key;
        low = beyond ? middle + 1 : low;
        high = beyond ? high : middle;
    }
    out_[i] = (v == v && low < length && KEY(items_[low]) == key) != invert;
}
"""
_ALL = {
    "rows": _ROWS,
    "long": _LONG,
    "network": _NETWORK,
    "write": _WRITE,
    "select": _SELECT,
    "short": _SHORT,
    "rank": _RANK,
    "pick": _PICK,
    "search": _SEARCH,
    "among": _AMONG,
}


def has_64bit_keys(kind: str) -> bool:
    """True if keys of a kind have eight bytes."""
    return COMPUTE_TYPES[compute_kind(kind)][0] in ("double", "long", "ulong")


@functools.cache
def sort_source(family: str, kind: str, descending: bool = False) -> str:
    """Return the kernels of a family for elements of a kind."""
    work = compute_kind(kind)
    scalar = COMPUTE_TYPES[work][0]
    nan = "((key) == (Key)-1)" if work[0] == "f" else "0"
    return "\n".join(
        [
            _ITEM64 if has_64bit_keys(kind) else _ITEM32,
            _KEYS.get(kind, _KEYS[work]),
            f"#define W {scalar}",
            f"#define W_16 {scalar}16",
            f"#define convert_W16 convert_{scalar}16",
            f"#define ORDER(key) ({'~' if descending else ''}(key))",
            f"#define IS_NAN(key) {nan}",
            "#define SAME(a, b) (KEY(a) == KEY(b) && !IS_NAN(KEY(a)))",
            GEOMETRY,
            _ALL.get(family, ""),
        ]
    )
