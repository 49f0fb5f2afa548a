"""Which modules of a model are sharded: none."""

from .._absent import absent, kind

_HERE = "torch.distributed.fsdp.wrap"

__all__ = [
    "CustomPolicy", "ModuleWrapPolicy", "always_wrap_policy", "enable_wrap", "lambda_auto_wrap_policy",
    "size_based_auto_wrap_policy", "transformer_auto_wrap_policy", "wrap",
]  # fmt: skip

CustomPolicy, ModuleWrapPolicy, enable_wrap = (
    kind(name, _HERE) for name in ("CustomPolicy", "ModuleWrapPolicy", "enable_wrap")
)
always_wrap_policy, lambda_auto_wrap_policy, size_based_auto_wrap_policy, transformer_auto_wrap_policy, wrap = (
    absent(name, _HERE)
    for name in (
        "always_wrap_policy", "lambda_auto_wrap_policy", "size_based_auto_wrap_policy", "transformer_auto_wrap_policy",
        "wrap",
    )
)  # fmt: skip
