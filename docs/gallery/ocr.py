"""Reading text in a picture by two ONNX models

PaddleOCR's networks, as ONNX files of the package rapidocr, find the lines of text in a picture and read them.

`torch.onnx.load` turns an ONNX file into a module. The first model gives each pixel's probability to belong to a line
of text (Liao and others, 2020). The second gives the probabilities of 6,625 characters, for each eight columns of a
line. The package's own code, which calls onnxruntime, is not used.

Needs rapidocr-onnxruntime, for its files.
"""

import importlib.util
import unicodedata
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import font_manager
from PIL import Image, ImageDraw, ImageFont
from scipy import ndimage

import torchlite as torch

folder = Path(importlib.util.find_spec("rapidocr_onnxruntime").origin).parent / "models"
detector = torch.onnx.load(folder / "ch_PP-OCRv4_det_infer.onnx")
reader = torch.onnx.load(folder / "ch_PP-OCRv4_rec_infer.onnx")
characters = ["", *reader.meta["onnx"]["metadata"]["character"].splitlines(), " "]  # the first one is CTC's blank
print(f"{len(list(detector.graph.nodes))} and {len(list(reader.graph.nodes))} nodes, {len(characters):,} characters")

# %%
# The picture is drawn here: five lines, uneven light, and noise.

lines = ["Gradient descent, since 1847", "Call (555) 0134 before noon", "Total: 42.50", "torch.onnx.load(path)", "EXIT"]
image = Image.new("L", (640, 384), 255)
draw = ImageDraw.Draw(image)
for index, line in enumerate(lines):
    font = ImageFont.truetype(
        font_manager.findfont("DejaVu Serif" if index % 2 else "DejaVu Sans"), 34 - 3 * (index % 3)
    )
    draw.text((30 + 35 * index, 30 + 68 * index), line, fill=40, font=font)
light = np.linspace(0.55, 1, 640)
noisy = np.array(image) * light + np.random.default_rng(0).normal(0, 8, (384, 640))
pixels = torch.tensor(noisy.clip(0, 255), dtype=torch.float32).div(127.5).sub(1).expand(1, 3, 384, 640)

# %%
# Detection: the connected regions of high probability are the cores of the lines. The model is trained to make
# regions smaller than the text, by a distance that grows with area and shrinks with perimeter; the boxes are enlarged
# accordingly.

with torch.no_grad():
    probability = detector(pixels)[0, 0]
regions, count = ndimage.label(probability.numpy() > 0.3)
boxes = []
for rows, columns in ndimage.find_objects(regions):
    height, width = rows.stop - rows.start, columns.stop - columns.start
    margin = round(0.8 * height * width / (height + width))
    boxes.append(
        (max(rows.start - margin, 0), rows.stop + margin, max(columns.start - margin, 0), columns.stop + margin)
    )
print(f"{count} lines found")

# %%
# Reading: each box is scaled to a height of 48 pixels. Repeated characters and blanks between them are dropped, as
# connectionist temporal classification does (Graves and others, 2006). The model has learned Chinese before all: it
# writes some parentheses as Chinese does, which `normalize` makes the usual ones, and leaves spaces out. The count
# of right lines disregards spaces.

read = []
for top, bottom, left, right in boxes:
    crop = pixels[:, :, top:bottom, left:right]
    width = round(48 * crop.shape[3] / crop.shape[2])
    crop = torch.nn.functional.interpolate(crop, (48, width), mode="bilinear")
    with torch.no_grad():
        best, which = reader(crop)[0].max(dim=1)
    kept = which.unique_consecutive()
    text = unicodedata.normalize("NFKC", "".join(characters[index] for index in kept.tolist()))
    certain = best[which > 0].mean().item()
    read.append(text)
    print(f"{text!r}, mean probability {certain:.2f}")
right = sum(a.replace(" ", "") == b.replace(" ", "") for a, b in zip(read, lines, strict=True))
print(f"{right} of {len(lines)} lines are right")

# %%
# The boxes in the picture, with the text that was read, and the map of probabilities.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3))
left.imshow(pixels[0, 0], cmap="gray")
for text, (top, bottom, start, end) in zip(read, boxes, strict=True):
    left.add_patch(plt.Rectangle((start, top), end - start, bottom - top, fill=False, edgecolor="C1"))
    left.text(start, top - 2, text, color="C3", fontsize=7, va="bottom")
left.set(title="Boxes and what was read", xticks=[], yticks=[])
right.imshow(probability, cmap="magma")
right.set(title="Probability of text", xticks=[], yticks=[])
figure.tight_layout()
