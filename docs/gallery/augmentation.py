"""Image augmentation by torchvision

Random crops, turns and colours make many images of one; a network that has seen moved digits needs fewer of them.

torchvision's transforms are written in PyTorch, and its package is compiled only in part. After `torch.as_torch()`
they run on torchlite's tensors. The photograph is scikit-learn's.

Needs torchvision.
"""

import sys

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits, load_sample_image

import torchlite as torch

torch.as_torch()
from torchvision.transforms import v2

from torchlite import nn

STEPS = 2 if "--quick" in sys.argv else 600

torch.manual_seed(0)
photograph = torch.tensor(load_sample_image("china.jpg")).permute(2, 0, 1)
print(tuple(photograph.shape), photograph.dtype)

# %%
# `Compose` applies transforms in turn. Each call draws new parameters.

augment = v2.Compose(
    [
        v2.RandomResizedCrop(160, scale=(0.2, 0.8), antialias=True),
        v2.RandomHorizontalFlip(),
        v2.RandomRotation(15),
        v2.ColorJitter(brightness=0.4, contrast=0.4, saturation=0.6, hue=0.1),
        v2.RandomApply([v2.GaussianBlur(7, sigma=(1.0, 2.5))], p=0.3),
    ]
)
figure, axes = plt.subplots(2, 4, figsize=(6, 3.1))
axes[0, 0].imshow(v2.functional.resize(photograph, [160], antialias=True).permute(1, 2, 0))
axes[0, 0].set_title("the photograph", fontsize=9)
for axis in axes.flat[1:]:
    axis.imshow(augment(photograph).permute(1, 2, 0))
for axis in axes.flat:
    axis.axis("off")
figure.tight_layout(pad=0.3)

# %%
# What it is good for: a network learns from 100 digits, once as they are, and once turned, moved and scaled anew in
# each step. The test has the other 1,697.

digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
labels = torch.tensor(digits.target)
order = torch.randperm(len(images))
few, rest = order[:100], order[100:]
move = v2.RandomAffine(degrees=12, translate=(0.1, 0.1), scale=(0.9, 1.1), interpolation=v2.InterpolationMode.BILINEAR)


def train(augmented):
    torch.manual_seed(1)
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 16, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    curve = []
    for step in range(STEPS):
        batch = images[few]
        if augmented:
            batch = torch.cat([move(part) for part in batch.split(20)])  # other parameters for each twenty
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch), labels[few]).backward()
        optimizer.step()
        if step % 50 == 49:
            with torch.no_grad():
                curve.append((model(images[rest]).argmax(1) == labels[rest]).float().mean().item())
    return curve


curves = {"as they are": train(False), "augmented": train(True)}
for name, curve in curves.items():
    print(f"100 digits {name}: test accuracy {curve[-1] if curve else 0:.1%}")

# %%
# Without augmentation the network soon knows its 100 images, and learns nothing more.

figure, axis = plt.subplots(figsize=(6, 3.2))
for name, curve in curves.items():
    axis.plot(range(50, STEPS + 1, 50), curve, label=name)
axis.set(title="Test accuracy from 100 digits", xlabel="step", ylim=(0.6, 1))
axis.legend()
