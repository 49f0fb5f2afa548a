"""Optimizer steps for several parameters at once, whose states lie one after the other in flat arrays.

A work-group updates TILE elements of one parameter, a work-item LANES at a time (1 on GPUs; wider vectors are OpenCL's
alone). `step_text` writes the program for K parameters.
"""

from __future__ import annotations

# Statements over the gradient g, the parameter p and the states a, b, c; n.v holds the step's numbers, of which the
# first two are the gradient's sign and the weight decay that is added to it.
UPDATE_RULES = {
    # numbers: 1 - beta1, beta2, 1 - beta2, eps, size of the step, decoupled decay
    "adam": """
        a += (g - a) * n.v[2];
        b = b * n.v[3] + g * g * n.v[4];
        X second = b;
#if STATES == 3
        c = fmax(c, b);
        second = c;
#endif
        p -= a / (sqrt(second) + n.v[5]) * n.v[6] + p * n.v[7];""",
    # numbers: lr, momentum, 1 - dampening, whether it is the first step, whether Nesterov's
    "sgd": """
#if STATES
        a = n.v[5] != 0 ? g : a * n.v[3] + g * n.v[4];
        g = n.v[6] != 0 ? g + a * n.v[3] : a;
#endif
        p -= g * n.v[2];""",
    # numbers: lr, alpha, 1 - alpha, eps, momentum
    "rmsprop": """
        a = a * n.v[3] + g * g * n.v[4];
        X average = a;
#if CENTERED
        b += (g - b) * n.v[4];
        average -= b * b;
#endif
        X update = g / (sqrt(average) + n.v[5]);
#if STATES == CENTERED + 2
        LAST = LAST * n.v[6] + update;
        update = LAST;
#endif
        p -= update * n.v[2];""",
    # numbers: rate, eps
    "adagrad": """
        a += g * g;
        p -= g / (sqrt(a) + n.v[3]) * n.v[2];""",
}

# The array that a work-group is for, and which of its elements.
_FIND = r"""
    int k = 0;
    while (BLOCK >= l.first[k + 1]) k++;
    const int start = (BLOCK - l.first[k]) * TILE, stop = min(TILE, l.size[k] - start);"""
_WALK = r"""
    for (int i = THREAD * LANES; i < stop; i += THREADS * LANES) {
#if LANES > 1
        if (i + LANES <= stop) {
VECTOR
            continue;
        }
#endif
        for (int j = i; j < stop && j < i + LANES; j++) {
SCALAR
        }
    }
"""
_STEP = (
    r"""
typedef struct { int first[K + 1], size[K], state[K], p[K], g[K], start[3] SCALARS; } Layout;
typedef struct { T_C v[8]; } Numbers;
KERNEL void update_all(POINTERS, const Layout l, const Numbers n) {
SCALER"""
    + _FIND
    + r"""
    GLOBAL T* param; GLOBAL GRADIENT* grad;
    switch (k) {
CASES
    }
    param += l.p[k];
    param += start;
    grad += l.g[k];
    grad += start;
POINTED"""
    + _WALK
    + "}\n"
)


# Adam's numbers from its count of steps, for steps whose numbers stay on the device: those of a graph change with every
# replay.
ADAM_NUMBERS = r"""
typedef struct { T_C sign, added, new1, decay2, new2, log1, log2, eps, lr, taken; } Options;
 /* new: 1 - beta, log: of beta */
KERNEL void adam_numbers(GLOBAL const float* count, GLOBAL T* numbers, const Options o) {
    if (ITEM > 0) return;
    const T_C steps = count[0];
    const T_C correction1 = -expm1(steps * o.log1), correction2 = sqrt(-expm1(steps * o.log2));
    numbers[0] = o.sign; numbers[1] = o.added; numbers[2] = o.new1; numbers[3] = o.decay2; numbers[4] = o.new2;
    numbers[5] = o.eps * correction2; numbers[6] = o.lr * correction2 / correction1; numbers[7] = o.taken;
}
"""
# Adagrad's, likewise.
ADAGRAD_NUMBERS = r"""
typedef struct { T_C sign, added, lr, decay, eps; } Options;
KERNEL void adagrad_numbers(GLOBAL const float* count, GLOBAL T* numbers, const Options o) {
    if (ITEM > 0) return;
    numbers[0] = o.sign; numbers[1] = o.added; numbers[2] = o.lr / (1 + (count[0] - 1) * o.decay); numbers[3] = o.eps;
    numbers[4] = 0; numbers[5] = 0; numbers[6] = 0; numbers[7] = 0;
}
"""
_GIVEN, _KEPT = (
    "const Layout l, const Numbers n) {\n",
    "GLOBAL const T* numbers, const Layout l) {\n"
    "    Numbers n;\n"
    "    for (int j = 0; j < 8; j++) n.v[j] = numbers[j];\n",
)


def _update(name: str, states: str, place: str, width: str, scaled: bool) -> str:
    """Load, step and store `width` elements."""
    kind, arrays = f"T_C{width}", [("p", "param"), *((s, f"state_{s}") for s in states)]
    lines = [f"{kind} {x} = T_LD{width}({array}, {place});" for x, array in arrays]
    if scaled:
        lines += [f"{kind} unscaled = T_LD{width}(grad, {place}) / scale;", f"T_ST{width}(grad, {place}, unscaled);"]
        lines += [f"{kind} g = unscaled * n.v[0] + p * n.v[1];"]
    else:
        lines += [f"{kind} g = T_LD{width}(grad, {place}) * n.v[0] + p * n.v[1];"]
    lines += [UPDATE_RULES[name].replace("X ", f"{kind} ").replace("LAST", states[-1:])]
    lines += [f"T_ST{width}({array}, {place}, {x});" for x, array in arrays]
    return "\n".join(lines)


def _switch_cases(count: int, text: str) -> str:
    """The cases of a switch over the arrays' numbers."""
    return "\n".join(
        [
            *(f"    case {k}: {text.replace('{k}', str(k))} break;" for k in range(1, count)),
            f"    default: {text.replace('{k}', '0')}",
        ]
    )


def _substitute(text: str, count: int, lanes: int, tile: int, parts: dict[str, str]) -> str:
    """A program with its parts in their places."""
    for key, value in parts.items():
        text = text.replace(key, value)
    return f"#define K {count}\n#define LANES {lanes}\n#define TILE {tile}\n" + text


# What a gradient scaler gives, in this order.
SCALER = {
    "found_inf": "    if (found_inf[l.found_inf] != 0) return;",
    "grad_scale": "    const T_C scale = grad_scale[l.grad_scale];",
}


def step_source(
    name: str, count: int, states: int, lanes: int, tile: int, kept: bool = False, scaler: tuple[str, ...] = ()
) -> str:
    """The program that steps `count` parameters by the rule `name` with `states` flat states.

    kept: its numbers are in memory. scaler: which of SCALER are there: no step is taken where `found_inf` is not 0,
    gradients are divided by `grad_scale`, in place.
    """
    letters, scaled = "abc"[:states], "grad_scale" in scaler
    gradient = "T" if scaled else "const T"
    pointers = [f"GLOBAL T* p{k}, GLOBAL {gradient}* g{k}" for k in range(count)] + [f"GLOBAL T* {s}_" for s in letters]
    pointers += [f"GLOBAL const float* {x}" for x in scaler]
    pointed = "\n".join(
        f"    GLOBAL T* state_{s} = {s}_ + l.start[{i}] + l.state[k];\n    state_{s} += start;"
        for i, s in enumerate(letters)
    )
    parts = {
        "POINTERS": ", ".join(pointers),
        "CASES": _switch_cases(count, "param = p{k}; grad = g{k};"),
        "POINTED": pointed,
        "GRADIENT": gradient,
    }
    parts |= {"SCALARS": "".join(f", {x}" for x in scaler), "SCALER": "\n".join(SCALER[x] for x in scaler)}
    parts |= {
        "VECTOR": _update(name, letters, "i", str(lanes), scaled),
        "SCALAR": _update(name, letters, "j", "", scaled),
    }
    return f"#define STATES {states}\n" + _substitute(
        _STEP.replace(_GIVEN, _KEPT) if kept else _STEP, count, lanes, tile, parts
    )


_UNSCALE = (
    r"""
typedef struct { int first[K + 1], size[K], grad[K], found, factor; } Layout;
KERNEL void unscale_all(POINTERS, GLOBAL float* found, GLOBAL const float* factor, const Layout l) {"""
    + _FIND
    + r"""
    GLOBAL T* grad;
    switch (k) {
CASES
    }
    grad += l.grad[k];
    grad += start;
    const T_C by = factor[l.factor];
    int bad = 0;"""
    + _WALK
    + r"""
    if (bad) found[l.found] = 1;
}
"""
)


def _unscale(place: str, width: str) -> str:
    """Check and multiply `width` elements."""
    bad = "any(isfinite(v) == 0)" if width else "!isfinite(v)"
    return (
        f"const T_C{width} v = T_LD{width}(grad, {place});\n"
        f"bad |= {bad};\n"
        f"if (by != 1) T_ST{width}(grad, {place}, v * by);"
    )


def unscale_source(count: int, lanes: int, tile: int) -> str:
    """The program that multiplies `count` gradients by `factor` and sets `found` to 1 where one has an infinity or a
    NaN.
    """
    parts = {
        "POINTERS": ", ".join(f"GLOBAL T* g{k}" for k in range(count)),
        "CASES": _switch_cases(count, "grad = g{k};"),
    }
    return _substitute(
        _UNSCALE, count, lanes, tile, parts | {"VECTOR": _unscale("i", str(lanes)), "SCALAR": _unscale("j", "")}
    )
