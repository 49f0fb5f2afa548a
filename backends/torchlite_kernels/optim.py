"""Optimizer steps for several parameters at once, whose states lie one after the other in flat arrays.

A work-item updates LANES elements of one parameter (1 on GPUs; wider vectors are OpenCL's alone). `step_text` writes the program for K
parameters.
"""
from __future__ import annotations

# Statements over the gradient g, the parameter p and the states a, b, c; n.v holds the step's numbers, of which the first two are the gradient's sign and
# the weight decay that is added to it.
STEPS = {
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

_STEP = r"""
typedef struct { int first[K + 1], size[K], state[K], p[K], g[K], start[3] SCALARS; } Layout;
typedef struct { T_C v[8]; } Numbers;
KERNEL void update_all(POINTERS, const Layout l, const Numbers n) {
    int item = ITEM, k = 0;
    if (item >= l.first[K]) return;
SCALER
    while (item >= l.first[k + 1]) k++;
    GLOBAL T* param; GLOBAL GRADIENT* grad;
    switch (k) {
CASES
    }
    param += l.p[k];
    grad += l.g[k];
POINTED
    int i = (item - l.first[k]) * LANES;
    const int stop = min(i + LANES, l.size[k]);
#if LANES > 1
    if (i + LANES <= l.size[k]) {
VECTOR
        return;
    }
#endif
    for (; i < stop; i++) {
SCALAR
    }
}
"""


# Adam's numbers from its count of steps, for steps whose numbers stay on the device: those of a graph change with every replay.
ADAM_NUMBERS = r"""
typedef struct { T_C sign, added, new1, decay2, new2, log1, log2, eps, lr, taken; } Options;  /* new: 1 - beta, log: of beta */
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
_GIVEN, _KEPT = "const Layout l, const Numbers n) {\n", "GLOBAL const T* numbers, const Layout l) {\n    Numbers n;\n    for (int j = 0; j < 8; j++) n.v[j] = numbers[j];\n"


def _update(name: str, states: str, width: str, scaled: bool) -> str:
    """Load, step and store `width` elements."""
    kind, places = f"T_C{width}", [("p", "param"), *((s, f"state_{s}") for s in states)]
    lines = [f"{kind} {x} = T_LD{width}({place}, i);" for x, place in places]
    if scaled:
        lines += [f"{kind} unscaled = T_LD{width}(grad, i) / scale;", f"T_ST{width}(grad, i, unscaled);"]
        lines += [f"{kind} g = unscaled * n.v[0] + p * n.v[1];"]
    else:
        lines += [f"{kind} g = T_LD{width}(grad, i) * n.v[0] + p * n.v[1];"]
    lines += [STEPS[name].replace("X ", f"{kind} ").replace("LAST", states[-1:])]
    lines += [f"T_ST{width}({place}, i, {x});" for x, place in places]
    return "\n".join(lines)


# What a gradient scaler gives, in this order.
SCALER = {"found_inf": "    if (found_inf[l.found_inf] != 0) return;", "grad_scale": "    const T_C scale = grad_scale[l.grad_scale];"}


def step_text(name: str, count: int, states: int, lanes: int, kept: bool = False, scaler: tuple[str, ...] = ()) -> str:
    """The program that steps `count` parameters by the rule `name` with `states` flat states.

    kept: its numbers are in memory. scaler: which of SCALER are there: no step is taken where `found_inf` is not 0, gradients are divided by
    `grad_scale`, in place.
    """
    letters, scaled = "abc"[:states], "grad_scale" in scaler
    gradient = "T" if scaled else "const T"
    pointers = [f"GLOBAL T* p{k}, GLOBAL {gradient}* g{k}" for k in range(count)] + [f"GLOBAL T* {s}_" for s in letters]
    pointers += [f"GLOBAL const float* {x}" for x in scaler]
    cases = "\n".join(f"    case {k}: param = p{k}; grad = g{k}; break;" for k in range(1, count)) + "\n    default: param = p0; grad = g0;"
    pointed = "\n".join(f"    GLOBAL T* state_{s} = {s}_ + l.start[{i}] + l.state[k];" for i, s in enumerate(letters))
    parts = {"POINTERS": ", ".join(pointers), "CASES": cases, "POINTED": pointed, "GRADIENT": gradient}
    parts |= {"SCALARS": "".join(f", {x}" for x in scaler), "SCALER": "\n".join(SCALER[x] for x in scaler)}
    parts |= {"VECTOR": _update(name, letters, str(lanes), scaled), "SCALAR": _update(name, letters, "", scaled)}
    text = f"#define K {count}\n#define STATES {states}\n#define LANES {lanes}\n" + (_STEP.replace(_GIVEN, _KEPT) if kept else _STEP)
    for key, value in parts.items():
        text = text.replace(key, value)
    return text


# A work-group takes TILE elements of one gradient.
_UNSCALE = r"""
typedef struct { int first[K + 1], size[K], grad[K], found, factor; } Layout;
KERNEL void unscale_all(POINTERS, GLOBAL float* found, GLOBAL const float* factor, const Layout l) {
    int k = 0;
    while (BLOCK >= l.first[k + 1]) k++;
    GLOBAL T* grad;
    switch (k) {
CASES
    }
    const int start = (BLOCK - l.first[k]) * TILE, stop = min(TILE, l.size[k] - start);
    grad += l.grad[k];
    grad += start;
    const T_C by = factor[l.factor];
    int bad = 0;
    for (int i = THREAD * LANES; i < stop; i += THREADS * LANES) {
#if LANES > 1
        if (i + LANES <= stop) {
            const T_CLANES v = T_LDLANES(grad, i);
            bad |= any(isfinite(v) == 0);
            if (by != 1) T_STLANES(grad, i, v * by);
            continue;
        }
#endif
        for (int j = i; j < stop && j < i + LANES; j++) {
            const T_C v = T_LD(grad, j);
            bad |= !isfinite(v);
            if (by != 1) T_ST(grad, j, v * by);
        }
    }
    if (bad) found[l.found] = 1;
}
"""


def unscale_text(count: int, lanes: int, tile: int) -> str:
    """The program that multiplies `count` gradients by `factor` and sets `found` to 1 where one has an infinity or a NaN."""
    cases = "\n".join(f"    case {k}: grad = g{k}; break;" for k in range(1, count)) + "\n    default: grad = g0;"
    text = _UNSCALE.replace("POINTERS", ", ".join(f"GLOBAL T* g{k}" for k in range(count))).replace("CASES", cases)
    for macro in ("T_C", "T_LD", "T_ST"):
        text = text.replace(f"{macro}LANES", f"{macro}{lanes}")
    return f"#define K {count}\n#define LANES {lanes}\n#define TILE {tile}\n" + text
