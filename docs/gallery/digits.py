"""Handwritten digits: learning curves and errors

A convolutional network learns scikit-learn's 1,797 digits. The curves show its progress, the pictures what it confuses.

The images have 8 by 8 pixels. A quarter of them is kept for the test. The script draws the loss and the accuracy after
each epoch, and then the test images that the network gets wrong.
"""

import sys

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import torchlite as torch
from torchlite import nn
from torchlite.utils.data import DataLoader, TensorDataset

EPOCHS = 1 if "--quick" in sys.argv else 12

torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
labels = torch.tensor(digits.target)
parts = train_test_split(images.numpy(), labels.numpy(), test_size=0.25, stratify=labels.numpy(), random_state=0)
train_images, test_images, train_labels, test_labels = map(torch.tensor, parts)
print(f"{len(train_images)} training images, {len(test_images)} test images")

# %%
# A pixel after two convolutions sees five by five pixels of the image. Dropout sets three tenths of the features to
# zero in training, so that the classifier relies on none of them alone.

model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.ReLU(),
    nn.Conv2d(16, 32, 3, padding=1),
    nn.ReLU(),
    nn.MaxPool2d(2),
    nn.Flatten(),
    nn.Dropout(0.3),
    nn.Linear(32 * 16, 10),
)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
loader = DataLoader(TensorDataset(train_images, train_labels), batch_size=64, shuffle=True)
print(f"{sum(p.numel() for p in model.parameters()):,} parameters")

# %%
# After each epoch `evaluate` computes loss and accuracy without dropout, on both parts of the data.


@torch.no_grad()
def evaluate(images, labels):
    model.eval()
    scores = model(images)
    model.train()
    return nn.functional.cross_entropy(scores, labels).item(), (scores.argmax(1) == labels).float().mean().item()


history = []
for epoch in range(EPOCHS):
    for batch, targets in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(batch), targets).backward()
        optimizer.step()
    history.append((*evaluate(train_images, train_labels), *evaluate(test_images, test_labels)))
    if epoch % 4 == 3:
        print(f"epoch {epoch + 1:2d}  test loss {history[-1][2]:.3f}  test accuracy {history[-1][3]:.1%}")

# %%
# Both losses fall. The distance between them grows: the network begins to fit the training images alone.

train_loss, train_accuracy, test_loss, test_accuracy = zip(*history, strict=True)
epochs = range(1, EPOCHS + 1)
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3))
left.plot(epochs, train_loss, label="training")
left.plot(epochs, test_loss, label="test")
left.set(title="Cross entropy", xlabel="epoch", yscale="log")
left.legend()
right.plot(epochs, train_accuracy, label="training")
right.plot(epochs, test_accuracy, label="test")
right.set(title="Accuracy", xlabel="epoch")
figure.tight_layout()

# %%
# The errors, with the digit's label, what the network says, and its probability. Most of them are hard to
# read for people too.

model.eval()
with torch.no_grad():
    confidence, said = model(test_images).softmax(1).max(1)
wrong = (said != test_labels).nonzero().flatten().tolist()
print(f"{len(wrong)} of {len(test_labels)} test images are wrong")
figure, axes = plt.subplots(1, 6, figsize=(8, 1.9))
for axis, index in zip(axes, wrong, strict=False):
    axis.imshow(test_images[index, 0], cmap="gray_r")
    axis.set_title(f"{test_labels[index]}, said {said[index]}\n({confidence[index]:.0%})", fontsize=10)
for axis in axes:
    axis.axis("off")
figure.tight_layout()
