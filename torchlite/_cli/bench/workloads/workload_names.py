"""Names of workloads, rows and groups, and the files that define them."""

from __future__ import annotations

from collections.abc import Iterable

# The workloads of each file, by the names of the functions that make their rows, and these rows.
FILES: dict[str, dict[str, tuple[str, ...]]] = {
    "small_ops_and_models": {
        "small": (
            "small.add", "small.add_grad", "small.matmul", "small.matmul_grad", "small.sum", "small.sum_grad",
            "small.exp_grad", "small.reshape_grad", "small.getitem_grad", "small.fwdbwd",
        ),
        "mlp": ("mlp.train", "mlp.infer"),
        "lenet": ("lenet.train",),
        "clip": ("clip_grad_norm",),
        "sparse": ("sparse.mm", "sparse.sampled_addmm", "sparse.mm_grad"),
    },
    "language_models": {
        "gpt": ("gpt.train", "gpt.generate"),
        "bert": ("bert_base.infer",),
        "encoder": ("encoder.train",),
        "lstm": ("lstm.train", "gru.train"),
        "recommender": ("recommender.train", "recommender.train_sparse"),
    },
    "vision_models": {
        "resnet18": ("resnet18_cifar.train",),
        "resnet50": ("resnet50.train_b4", "resnet50.infer_b1"),
        "mobilenet": ("mobilenet.train", "mobilenet.infer_b1", "mobilenet.pt2_b1"),
        "unet": ("unet.train", "unet.infer_b1", "unet.pt2_b1"),
        "wavenet": ("wavenet.train", "wavenet.infer_b1", "wavenet.pt2_b1"),
        "vit": ("vit.train", "vit.infer_b1", "vit.pt2_b1"),
    },
    "large_arrays": {
        "large": (
            "big.add", "big.exp", "big.gelu", "big.where", "big.chain", "big.softmax", "big.layernorm", "big.rmsnorm",
            "big.sum", "big.mean0", "big.var", "big.max", "big.cumsum", "big.topk", "big.sort", "big.transpose",
            "big.cat", "big.gather", "big.index_select", "big.dropout", "big.gemm1024", "big.gelu_grad",
            "big.softmax_grad", "big.layernorm_grad", "big.cross_entropy_grad", "big.embedding_grad",
        ),
    },
}  # fmt: skip
WORKLOADS = {name: rows for workloads in FILES.values() for name, rows in workloads.items()}
GROUPS: dict[str, tuple[str, ...]] = {
    "small": ("small",),
    "mlp": ("mlp", "lenet", "clip"),
    "networks": (*FILES["language_models"], *FILES["vision_models"]),
    "big": ("large", "sparse"),
}
# Workloads of other libraries, in one file each.
OTHER_LIBRARIES = {"jax": "in_jax", "tinygrad": "in_tinygrad"}
OTHER_WORKLOADS = {"jax": ("small", "mlp", "large"), "tinygrad": ("mlp", "large")}


def file_of(workload: str, module: str) -> str | None:
    """Return the file that defines a workload for a module; None if it has none."""
    if module in OTHER_LIBRARIES:
        return OTHER_LIBRARIES[module] if workload in OTHER_WORKLOADS[module] else None
    return next(file for file, workloads in FILES.items() if workload in workloads)


def workloads_of(rows: Iterable[str]) -> list[str]:
    """Return the workloads of rows, in listed order."""
    wanted = set(rows)
    return [name for group in GROUPS.values() for name in group if wanted.intersection(WORKLOADS[name])]


def group_of(row: str) -> str:
    """Return the group of a row; "process" for a row of no workload."""
    found = (group for group, names in GROUPS.items() if any(row in WORKLOADS[name] for name in names))
    return next(found, "process")


def select_rows(words: str) -> list[str]:
    """Return the rows of groups, workloads and row names; all by default. ValueError for an unknown name."""
    every = [row for name in (n for group in GROUPS.values() for n in group) for row in WORKLOADS[name]]
    wanted = set()
    for word in filter(None, words.split(",")):
        names = GROUPS.get(word, (word,) if word in WORKLOADS else ())
        if not names and word not in every:
            raise ValueError(f"there is no group, workload or row {word!r} (--list shows them)")
        wanted.update([row for name in names for row in WORKLOADS[name]] or [word])
    return [row for row in every if row in wanted or not words]
