"""The networks of `serving.py`: each is made of the library that is given, torchlite or PyTorch."""

from __future__ import annotations

from typing import Any

NAMES = ("mlp", "cnn", "minilm")
TOKENS = 32
_WIDTH, _HEADS, _LAYERS, _INNER, _WORDS = 384, 12, 6, 1536, 30522  # of all-MiniLM-L6-v2


def make(name: str, torch: Any) -> Any:
    """Return a network in eval mode, with weights by seed."""
    torch.manual_seed(0)
    return {"mlp": _mlp, "cnn": _cnn, "minilm": _minilm}[name](torch).eval()


def example(name: str, torch: Any, rows: int = 1) -> tuple[Any, ...]:
    """Return inputs of a network."""
    torch.manual_seed(1)
    if name == "mlp":
        return (torch.randn(rows, 256),)
    if name == "cnn":
        return (torch.randn(rows, 3, 96, 96),)
    return torch.randint(1, _WORDS, (rows, TOKENS)), torch.ones(rows, TOKENS)


def input_names(name: str) -> list[str]:
    """Return the names of a network's inputs."""
    return ["ids", "mask"] if name == "minilm" else ["x"]


def _mlp(torch: Any) -> Any:
    nn = torch.nn
    return nn.Sequential(
        nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 10)
    )  # fmt: skip


def _cnn(torch: Any) -> Any:
    """Depthwise separable convolutions, as in MobileNet, with a quarter of its channels: 0.2 million weights."""
    nn = torch.nn

    def block(given: int, made: int, stride: int, groups: int = 1, size: int = 3) -> list[Any]:
        padding = size // 2
        conv = nn.Conv2d(given, made, size, stride, padding, groups=groups, bias=False)
        return [conv, nn.BatchNorm2d(made), nn.ReLU6()]

    layers, channels = block(3, 8, 2), 8
    for made, stride in ((16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1), (128, 1), (256, 2), (256, 1)):
        layers += block(channels, channels, stride, channels) + block(channels, made, 1, 1, 1)
        channels = made
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 100))


def _minilm(torch: Any) -> Any:
    nn = torch.nn

    class Layer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.query, self.key, self.value = (nn.Linear(_WIDTH, _WIDTH) for _ in range(3))
            self.out, self.norm = nn.Linear(_WIDTH, _WIDTH), nn.LayerNorm(_WIDTH, 1e-12)
            self.inner, self.outer = nn.Linear(_WIDTH, _INNER), nn.Linear(_INNER, _WIDTH)
            self.last = nn.LayerNorm(_WIDTH, 1e-12)

        def forward(self, x: Any, bias: Any) -> Any:
            def heads(linear: Any) -> Any:
                return linear(x).unflatten(-1, (_HEADS, _WIDTH // _HEADS)).transpose(1, 2)

            scores = heads(self.query) @ heads(self.key).transpose(2, 3) / (_WIDTH // _HEADS) ** 0.5
            mixed = ((scores + bias).softmax(-1) @ heads(self.value)).transpose(1, 2).flatten(2)
            x = self.norm(x + self.out(mixed))
            return self.last(x + self.outer(nn.functional.gelu(self.inner(x))))

    class Encoder(nn.Module):
        """Texts of 32 tokens to vectors of length 1."""

        def __init__(self) -> None:
            super().__init__()
            self.words, self.places = nn.Embedding(_WORDS, _WIDTH), nn.Embedding(512, _WIDTH)
            self.kinds, self.norm = nn.Embedding(2, _WIDTH), nn.LayerNorm(_WIDTH, 1e-12)
            self.layers = nn.ModuleList(Layer() for _ in range(_LAYERS))

        def forward(self, ids: Any, mask: Any) -> Any:
            x = self.words(ids) + self.places.weight[:TOKENS] + self.kinds.weight[0]
            x, bias = self.norm(x), (1 - mask)[:, None, None, :] * -1e9
            for layer in self.layers:
                x = layer(x, bias)
            kept = (x * mask[:, :, None]).sum(1) / mask.sum(1, keepdim=True)
            return nn.functional.normalize(kept, dim=1)

    return Encoder()


_PARTS = {
    "attention.self.query": "query", "attention.self.key": "key", "attention.self.value": "value",
    "attention.output.dense": "out", "attention.output.LayerNorm": "norm", "intermediate.dense": "inner",
    "output.dense": "outer", "output.LayerNorm": "last",
}  # fmt: skip
_EMBEDDINGS = {
    "word_embeddings": "words", "position_embeddings": "places", "token_type_embeddings": "kinds", "LayerNorm": "norm",
}  # fmt: skip


def minilm_weights(tensors: dict[str, Any]) -> dict[str, Any]:
    """Return the encoder's state dict of the tensors of all-MiniLM-L6-v2."""
    found = {}
    for name, tensor in tensors.items():
        place, _, end = name.removeprefix("bert.").rpartition(".")
        if place.startswith("embeddings.") and place.removeprefix("embeddings.") in _EMBEDDINGS:
            found[f"{_EMBEDDINGS[place.removeprefix('embeddings.')]}.{end}"] = tensor
        elif place.startswith("encoder.layer."):
            number, _, part = place.removeprefix("encoder.layer.").partition(".")
            found[f"layers.{number}.{_PARTS[part]}.{end}"] = tensor
    return found
