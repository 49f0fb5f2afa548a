"""Tensors and NumPy arrays in one program: shared memory, operators, functions of NumPy with gradients."""

import numpy as np

import torchlite as torch

array = np.arange(6, dtype=np.float32).reshape(2, 3)
shared = torch.from_numpy(array)
shared[0, 0] = 7
assert array[0, 0] == 7
copied = torch.tensor(array)
back = copied.numpy()
as_array = np.asarray(copied)
assert back.dtype == np.float32 and as_array.shape == (2, 3)

t = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
y = np.sin(t) * np.arange(3)
y.sum().backward()
assert t.grad is not None and np.allclose(t.grad, np.cos([1.0, 2.0, 3.0]) * np.arange(3))

t.grad = None
scaled = np.arange(3.0) * t + np.ones(3) / t - np.float64(2.0) * t
scaled.sum().backward()
product = np.eye(3) @ t.double()
assert isinstance(product, torch.Tensor) and product.requires_grad

joined = np.concatenate([t, t])
assert joined.shape == (6,)
np.testing.assert_allclose(t.detach(), [1.0, 2.0, 3.0])
mean = np.mean(t.detach().numpy())
values = t.detach().cpu().numpy().astype(np.float64)
values += t.detach().numpy()
masked = np.where(values > 3, values, 0.0)
index = np.array([0, 2])
picked = shared[:, index]
number: float = float(t[0])
print(mean, masked, picked.tolist(), f"{number:.2f}", t.detach().numpy().max(), torch.as_tensor([1, 2]).tolist())
assert picked.shape == (2, 2)
