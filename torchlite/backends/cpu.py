"""The processor."""


def get_cpu_capability() -> str:
    """The widest vector instructions that NumPy finds: "AVX512", "AVX2", "NEON" … or "DEFAULT"."""
    from numpy._core._multiarray_umath import __cpu_features__ as features

    names = {
        "AVX512": ("AVX512F", "X86_V4"),
        "AVX2": ("AVX2", "X86_V3"),
        "NEON": ("NEON", "ASIMD"),
        "ALTIVEC": ("VSX",),
        "VECTOR": ("VX",),
    }
    return next((name for name, keys in names.items() if any(features.get(key) for key in keys)), "DEFAULT")
