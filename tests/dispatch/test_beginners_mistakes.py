"""Mistakes of people who begin with PyTorch: the errors have PyTorch 2.13's types and first lines (90 letters of them).

Three have their own text: PyTorch's lists signatures for a wrong keyword, other devices, and nothing for an empty file.
"""

from __future__ import annotations

import copy
import io

import pytest

import torchlite as torch
from torchlite import nn, optim
from torchlite.nn import functional as F
from torchlite.utils import data

# Name, program, type of the error, beginning of its text.
MISTAKES = [
    (
        "mm",
        "torch.mm(torch.ones(2, 3), torch.ones(2, 3))",
        "RuntimeError",
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 2x3)",
    ),
    (
        "matmul operator",
        "torch.ones(2, 3) @ torch.ones(4, 5)",
        "RuntimeError",
        "mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
    ),
    ("mm of vectors", "torch.mm(torch.ones(3), torch.ones(3))", "RuntimeError", "self must be a matrix"),
    ("bmm of matrices", "torch.bmm(torch.ones(2, 3), torch.ones(3, 2))", "RuntimeError", "batch1 must be a 3D tensor"),
    (
        "linear width",
        "nn.Linear(3, 4)(torch.ones(2, 5))",
        "RuntimeError",
        "mat1 and mat2 shapes cannot be multiplied (2x5 and 3x4)",
    ),
    (
        "linear of integers",
        "nn.Linear(3, 4)(torch.ones(2, 3, dtype=torch.int64))",
        "RuntimeError",
        "mat1 and mat2 must have the same dtype, but got Long and Float",
    ),
    (
        "linear of doubles",
        "nn.Linear(3, 4)(torch.ones(2, 3, dtype=torch.float64))",
        "RuntimeError",
        "mat1 and mat2 must have the same dtype, but got Double and Float",
    ),
    (
        "conv channels",
        "nn.Conv2d(3, 8, 3)(torch.ones(1, 1, 8, 8))",
        "RuntimeError",
        "Given groups=1, weight of size [8, 3, 3, 3], expected input[1, 1, 8, 8] to have 3 channels",
    ),
    (
        "conv without channels",
        "nn.Conv2d(1, 8, 3)(torch.ones(8, 8))",
        "RuntimeError",
        "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [8, 8]",
    ),
    (
        "conv kernel larger",
        "nn.Conv2d(1, 8, 5)(torch.ones(1, 1, 3, 3))",
        "RuntimeError",
        "Calculated padded input size per channel: (3 x 3). Kernel size: (5 x 5). Kernel size can't",
    ),
    (
        "batch norm of one",
        "nn.BatchNorm1d(3)(torch.ones(1, 3))",
        "ValueError",
        "Expected more than 1 value per channel when training, got input size torch.Size([1, 3])",
    ),
    ("batch norm dimensions", "nn.BatchNorm2d(3)(torch.ones(2, 3))", "ValueError", "expected 4D input (got 2D input)"),
    (
        "batch norm channels",
        "nn.BatchNorm2d(3)(torch.ones(2, 4, 5, 5))",
        "RuntimeError",
        "running_mean should contain 4 elements not 3",
    ),
    (
        "layer norm shape",
        "nn.LayerNorm(4)(torch.ones(2, 3))",
        "RuntimeError",
        "Given normalized_shape=[4], expected input with shape [*, 4], but got input of size[2, 3]",
    ),
    ("embedding index", "nn.Embedding(4, 2)(torch.tensor([1, 9]))", "IndexError", "index out of range in self"),
    (
        "embedding of floats",
        "nn.Embedding(4, 2)(torch.tensor([1.0]))",
        "RuntimeError",
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long,",
    ),
    (
        "lstm width",
        "nn.LSTM(3, 4)(torch.ones(5, 2, 7))",
        "RuntimeError",
        "input.size(-1) must be equal to input_size. Expected 3, got 7",
    ),
    ("attention heads", "nn.MultiheadAttention(5, 2)", "AssertionError", "embed_dim must be divisible by num_heads"),
    (
        "cat shapes",
        "torch.cat([torch.ones(2, 3), torch.ones(2, 4)])",
        "RuntimeError",
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 4 for tens",
    ),
    (
        "cat of one tensor",
        "torch.cat(torch.ones(2), torch.ones(2))",
        "TypeError",
        "cat(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor",
    ),
    (
        "stack shapes",
        "torch.stack([torch.ones(2), torch.ones(3)])",
        "RuntimeError",
        "stack expects each tensor to be equal size, but got [2] at entry 0 and [3] at entry 1",
    ),
    (
        "broadcast",
        "torch.ones(3) + torch.ones(4)",
        "RuntimeError",
        "The size of tensor a (3) must match the size of tensor b (4) at non-singleton dimension 0",
    ),
    (
        "in-place broadcast",
        "torch.ones(3).add_(torch.ones(2, 3))",
        "RuntimeError",
        "output with shape [3] doesn't match the broadcast shape [2, 3]",
    ),
    (
        "in-place dtype",
        "torch.ones(3, dtype=torch.int64).add_(1.5)",
        "RuntimeError",
        "result type Float can't be cast to the desired output type Long",
    ),
    ("number from text", 'torch.ones(3) + "1"', "TypeError", "unsupported operand type(s) for +: 'Tensor' and 'str'"),
    ("label", "F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 7]))", "IndexError", "Target 7 is out of bounds."),
    (
        "labels of floats",
        "F.cross_entropy(torch.ones(2, 3), torch.ones(2))",
        "RuntimeError",
        "expected target dtype to be Long or Byte, but got Float",
    ),
    (
        "label count",
        "F.cross_entropy(torch.ones(2, 3), torch.tensor([0, 1, 2]))",
        "ValueError",
        "Expected input batch_size (2) to match target batch_size (3).",
    ),
    (
        "nll of integers",
        "F.nll_loss(torch.ones(2, 3, dtype=torch.int64), torch.tensor([0, 1]))",
        "NotImplementedError",
        "\"nll_loss_out_frame\" not implemented for 'Long'",
    ),
    (
        "bce range",
        "F.binary_cross_entropy(torch.tensor([2.0]), torch.tensor([1.0]))",
        "RuntimeError",
        "all elements of input should be between 0 and 1",
    ),
    (
        "bce dtype",
        "F.binary_cross_entropy_with_logits(torch.ones(2), torch.ones(3))",
        "ValueError",
        "Target size (torch.Size([3])) must be the same as input size (torch.Size([2]))",
    ),
    (
        "integer gradient",
        "torch.tensor([1, 2], requires_grad=True)",
        "RuntimeError",
        "Only Tensors of floating point and complex dtype can require gradients",
    ),
    (
        "backward of many",
        "(torch.ones(3, requires_grad=True) * 2).backward()",
        "RuntimeError",
        "grad can be implicitly created only for scalar outputs",
    ),
    (
        "backward without graph",
        "torch.ones(1).sum().backward()",
        "RuntimeError",
        "element 0 of tensors does not require grad and does not have a grad_fn",
    ),
    (
        "backward twice",
        "backward_twice()",
        "RuntimeError",
        "Trying to backward through the graph a second time (or directly access saved tensors after",
    ),
    (
        "changed in place",
        "changed_then_backward()",
        "RuntimeError",
        "one of the variables needed for gradient computation has been modified by an inplace opera",
    ),
    (
        "in place on leaf",
        "torch.ones(3, requires_grad=True).add_(1)",
        "RuntimeError",
        "a leaf Variable that requires grad is being used in an in-place operation.",
    ),
    (
        "numpy of grad",
        "torch.ones(3, requires_grad=True).numpy()",
        "RuntimeError",
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
    ),
    (
        "deepcopy of non-leaf",
        "copy.deepcopy(torch.ones(3, requires_grad=True) * 2)",
        "RuntimeError",
        "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol a",
    ),
    ("item of many", "torch.ones(3).item()", "RuntimeError", "a Tensor with 3 elements cannot be converted to Scalar"),
    (
        "bool of many",
        "bool(torch.ones(3))",
        "RuntimeError",
        "Boolean value of Tensor with more than one value is ambiguous",
    ),
    (
        "float of many",
        "float(torch.ones(2, 2))",
        "ValueError",
        "only one element tensors can be converted to Python scalars",
    ),
    ("ragged list", "torch.tensor([[1, 2], [3]])", "ValueError", "expected sequence of length 2 at dim 1 (got 1)"),
    (
        "list of tensors",
        "torch.tensor([torch.ones(2), torch.ones(3)])",
        "ValueError",
        "only one element tensors can be converted to Python scalars",
    ),
    ("text", 'torch.tensor("abc")', "TypeError", "new(): invalid data type 'str'"),
    ("view size", "torch.ones(4).view(3)", "RuntimeError", "shape '[3]' is invalid for input of size 4"),
    (
        "view of transposed",
        "torch.ones(2, 3).t().view(6)",
        "RuntimeError",
        "view size is not compatible with input tensor's size and stride (at least one dimension sp",
    ),
    ("reshape", "torch.ones(4).reshape(3, -1)", "RuntimeError", "shape '[3, -1]' is invalid for input of size 4"),
    ("index", "torch.ones(3)[5]", "IndexError", "index 5 is out of bounds for dimension 0 with size 3"),
    ("too many indices", "torch.ones(3)[0, 1]", "IndexError", "too many indices for tensor of dimension 1"),
    (
        "float index",
        "torch.ones(3)[1.0]",
        "IndexError",
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid i",
    ),
    (
        "mask shape",
        "torch.ones(3)[torch.tensor([True, False])]",
        "IndexError",
        "The shape of the mask [2] at index 0 does not match the shape of the indexed tensor [3] at",
    ),
    ("negative step", "torch.ones(3)[::-1]", "ValueError", "step must be greater than zero"),
    (
        "dimension",
        "torch.ones(3).sum(4)",
        "IndexError",
        "Dimension out of range (expected to be in range of [-1, 0], but got 4)",
    ),
    ("keyword", "torch.sum(torch.ones(3), dims=1)", "TypeError", "sum() got an unexpected keyword argument 'dims'"),
    ("function typo", "torch.sotfmax(torch.ones(3), 0)", "AttributeError", "module 'torch' has no attribute 'sotfmax'"),
    ("method typo", "torch.ones(3).reshpae(3)", "AttributeError", "'Tensor' object has no attribute 'reshpae'"),
    ("layer typo", "nn.Liner(2, 3)", "AttributeError", "module 'torch.nn' has no attribute 'Liner'"),
    ("attribute typo", "ForwardTypo()(torch.ones(2))", "AttributeError", "'ForwardTypo' object has no attribute 'fc2'"),
    ("dtype typo", "torch.ones(3, dtype=torch.flaot32)", "AttributeError", "module 'torch' has no attribute 'flaot32'"),
    (
        "dtype string",
        'torch.ones(3, dtype="float32")',
        "TypeError",
        "ones(): argument 'dtype' must be torch.dtype, not str",
    ),
    (
        "device string",
        'torch.ones(3, device="gpu")',
        "RuntimeError",
        "Expected one of cpu, cuda, opencl, meta, ipu, xpu, mkldnn, opengl, ideep, hip, ve, fpga, m",
    ),
    ("no super init", "NoSuper()", "AttributeError", "cannot assign module before Module.__init__() call"),
    (
        "no forward",
        "NoForward()(torch.ones(2))",
        "NotImplementedError",
        'Module [NoForward] is missing the required "forward" function',
    ),
    (
        "wrong state dict",
        'nn.Linear(2, 3).load_state_dict({"weights": torch.ones(3, 2)})',
        "RuntimeError",
        "Error(s) in loading state_dict for Linear:",
    ),
    (
        "state dict shape",
        "nn.Linear(2, 3).load_state_dict(nn.Linear(2, 4).state_dict())",
        "RuntimeError",
        "Error(s) in loading state_dict for Linear:",
    ),
    (
        "parameter set to tensor",
        'nn.Linear(2, 3).__setattr__("weight", torch.ones(3, 2))',
        "TypeError",
        "cannot assign 'torch.FloatTensor' as parameter 'weight' (torch.nn.Parameter or None expect",
    ),
    ("optimizer without parameters", "optim.SGD([], lr=0.1)", "ValueError", "optimizer got an empty parameter list"),
    (
        "optimizer of a tensor",
        "optim.Adam(torch.ones(3))",
        "TypeError",
        "params argument given to the optimizer should be an iterable of Tensors or dicts, but got ",
    ),
    (
        "optimizer of a non-leaf",
        "optim.SGD([torch.ones(3, requires_grad=True) * 2], lr=0.1)",
        "ValueError",
        "can't optimize a non-leaf Tensor",
    ),
    ("optimizer rate", "optim.SGD(nn.Linear(2, 3).parameters(), lr=-1)", "ValueError", "Invalid learning rate: -1"),
    (
        "collate ragged",
        "next(iter(data.DataLoader(Ragged(), batch_size=2)))",
        "RuntimeError",
        "stack expects each tensor to be equal size, but got [1] at entry 0 and [2] at entry 1",
    ),
    (
        "collate none",
        "next(iter(data.DataLoader(Nones(), batch_size=2)))",
        "TypeError",
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found ",
    ),
    (
        "loader shuffle and sampler",
        "data.DataLoader(Ragged(), shuffle=True, sampler=data.SequentialSampler(Ragged()))",
        "ValueError",
        "sampler option is mutually exclusive with shuffle",
    ),
    (
        "loader batch size",
        "data.DataLoader(Ragged(), batch_size=0)",
        "ValueError",
        "batch_size should be a positive integer value, but got batch_size=0",
    ),
    (
        "dataset without length",
        "data.DataLoader(NoLength(), shuffle=True)",
        "TypeError",
        "object of type 'NoLength' has no len()",
    ),
    (
        "dataset sizes",
        "data.TensorDataset(torch.ones(2), torch.ones(3))",
        "AssertionError",
        "Size mismatch between tensors",
    ),
    (
        "split sizes",
        "data.random_split(Ragged(), [2, 3])",
        "ValueError",
        "Sum of input lengths does not equal the length of the input dataset!",
    ),
    (
        "load junk",
        "torch.load(junk())",
        "UnpicklingError",
        "Weights only load failed. In PyTorch 2.6, we changed the default value of the `weights_onl",
    ),
    (
        "load empty",
        'torch.load(junk(b""))',
        "EOFError",
        "Ran out of input: the pickle ends too early (in the record magic number)",
    ),
    (
        "load absent",
        'torch.load("absent/model.pt")',
        "FileNotFoundError",
        "[Errno 2] No such file or directory: 'absent/model.pt'",
    ),
    (
        "sequential of function",
        "nn.Sequential(nn.Linear(2, 3), F.relu)",
        "TypeError",
        "torch.nn.functional.relu is not a Module subclass",
    ),
    (
        "module list called",
        "nn.ModuleList([nn.Linear(2, 3)])(torch.ones(2))",
        "NotImplementedError",
        'Module [ModuleList] is missing the required "forward" function',
    ),
    (
        "solve singular",
        "torch.linalg.inv(torch.zeros(2, 2))",
        "_LinAlgError",
        "linalg.inv: The diagonal element 1 is zero, the inversion could not be completed because t",
    ),
    (
        "out dtype",
        "torch.add(torch.ones(3), 1, out=torch.ones(3, dtype=torch.int64))",
        "RuntimeError",
        "result type Float can't be cast to the desired output type Long",
    ),
]


class NoSuper(nn.Module):
    def __init__(self):
        self.layer = nn.Linear(2, 2)


class NoForward(nn.Module):
    pass


class Ragged(data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return torch.ones(i + 1)


class Nones(data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        return None


class NoLength(data.Dataset):
    def __getitem__(self, i):
        return torch.ones(2)


class NoItem(data.Dataset):
    def __len__(self):
        return 3


class ForwardTypo(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 2)

    def forward(self, x):
        return self.fc2(x)


def junk(content=b"not a checkpoint"):
    return io.BytesIO(content)


def changed_then_backward():
    x = torch.ones(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    y.sum().backward()


def backward_twice():
    x = torch.ones(3, requires_grad=True)
    y = (x * x).sum()
    y.backward()
    y.backward()


@pytest.mark.parametrize(("program", "kind", "text"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES])
@pytest.mark.filterwarnings("ignore")
def test_an_error_is_pytorchs(program, kind, text):
    with pytest.raises(Exception) as caught:
        eval(program, {**globals(), "F": F, "copy": copy, "optim": optim})
    assert type(caught.value).__name__ == kind
    first = (str(caught.value).splitlines() or [""])[0].replace("torchlite", "torch")
    assert first[:90] == text
