"""Sparse and quantized embeddings."""

from __future__ import annotations

from typing import Any

import torchlite as torch
from torchlite import nn
from torchlite.ao.pruning.sparsifier.utils import fqn_to_module, module_to_fqn

SUPPORTED_MODULES: set[Any] = {nn.Embedding, nn.EmbeddingBag}


def _fetch_all_embeddings(model: Any) -> list[tuple[Any, Any]]:
    """Return names and modules of all embeddings within a model."""
    return [(name, module) for name, module in model.named_modules() if type(module) in SUPPORTED_MODULES and name]


def _quantize(model: Any, embeddings: list[tuple[Any, Any]]) -> None:
    """Quantize embeddings of a model."""
    for _, module in embeddings:
        module.qconfig = torch.ao.quantization.float_qparams_weight_only_qconfig
    torch.ao.quantization.prepare(model, inplace=True)
    torch.ao.quantization.convert(model, inplace=True)


def post_training_sparse_quantize(
    model: Any, data_sparsifier_class: Any, sparsify_first: bool = True, select_embeddings: list[Any] | None = None,
    **sparse_config: Any,
) -> None:  # fmt: skip
    """Makes the embeddings of a model sparse, and quantizes them.

    Args:
        model: The model, which is changed.
        data_sparsifier_class: The class of the sparsifier.
        sparsify_first: Whether they are made sparse before they are quantized. Default: ``True``.
        select_embeddings: The embeddings. Default: all.
        **sparse_config: Arguments of the sparsifier.

    Raises:
        AssertionError: `select_embeddings` is no list, or an item is no embedding of the model.

    Example:
        >>> from torchlite.ao.pruning._experimental.data_sparsifier import DataNormSparsifier, quantization_utils
        >>> model = torch.nn.Sequential(torch.nn.Embedding(4, 8))
        >>> quantization_utils.post_training_sparse_quantize(model, DataNormSparsifier)
        >>> type(model[0]).__module__.split(".")[-3]
        'quantized'
    """
    sparsifier = data_sparsifier_class(**sparse_config)
    if select_embeddings is None:
        embeddings = _fetch_all_embeddings(model)
    else:
        if not isinstance(select_embeddings, list):
            raise AssertionError("the embedding_modules must be a list of embedding modules")
        if any(type(one) not in SUPPORTED_MODULES for one in select_embeddings):
            raise AssertionError("the embedding_modules list must be an embedding or embedding bags")
        embeddings = [(module_to_fqn(model, one), one) for one in select_embeddings]
        if any(name is None for name, _ in embeddings):
            raise AssertionError("the embedding modules must be part of input model")
    if sparsify_first:
        _sparsify(sparsifier, embeddings)
        _quantize(model, embeddings)
        return
    _quantize(model, embeddings)
    layers = {name: fqn_to_module(model, name) for name, _ in embeddings}
    weights = {name: layer.weight() for name, layer in layers.items()}
    numbers = {name: weight.dequantize() for name, weight in weights.items()}
    _sparsify(sparsifier, [*numbers.items()])
    for name, old in weights.items():
        new = torch.quantize_per_channel(
            numbers[name], old.q_per_channel_scales(), old.q_per_channel_zero_points(), old.q_per_channel_axis(),
            old.dtype,
        )  # fmt: skip
        layers[name].set_weight(new)


def _sparsify(sparsifier: Any, data: list[tuple[str, Any]]) -> None:
    for name, one in data:
        sparsifier.add_data(name=name.replace(".", "_"), data=one)
    sparsifier.step()
    sparsifier.squash_mask()
