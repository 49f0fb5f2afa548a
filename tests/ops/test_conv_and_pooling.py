"""Convolution, pooling, padding and resampling: PyTorch's errors, composites against kernels, large convolutions cut
into blocks.
"""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import torchlite as torch
import torchlite.nn.functional as F
from torchlite._dispatch import REGISTRY, table_of


def r(*shape):
    return torch.from_numpy(np.random.default_rng(0).random(shape, dtype=np.float32))


# The error of PyTorch 2.13 for each call.
ERRORS = [
    (
        "F.conv2d(r(2,3),r(4,3,3,3))",
        RuntimeError,
        "Expected 3D (unbatched) or 4D (batched) input to conv2d, but got input of size: [2, 3]",
    ),
    (
        "F.conv2d(r(1,2,5,5),r(4,3,3,3))",
        RuntimeError,
        "Given groups=1, weight of size [4, 3, 3, 3], expected input[1, 2, 5, 5] to have 3 channels, but got ",
    ),
    (
        "F.conv2d(r(1,3,5,5),r(4,3,3))",
        RuntimeError,
        "expected stride to be a single integer value or a list of 1 values to match the convolution dimensio",
    ),
    (
        "F.conv2d(r(1,3,2,2),r(4,3,3,3))",
        RuntimeError,
        "Calculated padded input size per channel: (2 x 2). Kernel size: (3 x 3). Kernel size can't be greate",
    ),
    (
        "F.conv2d(r(1,3,5,5),r(4,3,3,3),r(3))",
        RuntimeError,
        "Given weight of size [4, 3, 3, 3], expected bias to be 1-dimensional with 4 elements, but got bias o",
    ),
    (
        "F.conv2d(r(1,3,5,5),r(4,3,3,3),r(3,1))",
        RuntimeError,
        "Given weight of size [4, 3, 3, 3], expected bias to be 1-dimensional with 4 elements, but got bias o",
    ),
    (
        "F.conv2d(r(1,4,5,5),r(4,2,3,3),groups=3)",
        RuntimeError,
        "Given groups=3, expected weight to be divisible by 3 at dimension 0, but got weight of size [[4, 2, ",
    ),
    (
        "F.conv2d(r(1,4,5,5),r(3,2,3,3),groups=2)",
        RuntimeError,
        "Given groups=2, expected weight to be divisible by 2 at dimension 0, but got weight of size [[3, 2, ",
    ),
    ("F.conv2d(r(1,3,5,5),r(4,3,3,3),stride=0)", RuntimeError, "non-positive stride is not supported"),
    ("F.conv2d(r(1,3,5,5),r(4,3,3,3),padding=-1)", RuntimeError, "negative padding is not supported"),
    (
        "F.conv2d(r(1,3,5,5),r(4,3,3,3),dilation=0)",
        RuntimeError,
        "dilation should be greater than zero, but got [0, 0]",
    ),
    ("F.conv2d(r(1,3,5,5),r(4,3,3,3),groups=0)", RuntimeError, "non-positive groups is not supported"),
    (
        "F.conv2d(r(1,3,5,5),r(4,3,3,3),stride=(1,2,3))",
        RuntimeError,
        "expected stride to be a single integer value or a list of 2 values to match the convolution dimensio",
    ),
    (
        "F.conv2d(r(1,3,5,5),r(4,3,3,3),padding=(1,2,3))",
        RuntimeError,
        "expected padding to be a single integer value or a list of 2 values to match the convolution dimensi",
    ),
    (
        "F.conv2d(r(1,3,5,5),r(4,3,3,3),dilation=(1,2,3))",
        RuntimeError,
        "expected dilation to be a single integer value or a list of 2 values to match the convolution dimens",
    ),
    ("F.conv2d(r(1,3,5,5),r(4,3,3,3),padding='foo')", RuntimeError, "Invalid padding string: 'foo'"),
    (
        "F.conv2d(r(1,3,5,5),r(4,3,3,3),padding='same',stride=2)",
        RuntimeError,
        "padding='same' is not supported for strided convolutions",
    ),
    ("F.conv2d(r(1,3,5,5).double(),r(4,3,3,3))", RuntimeError, "expected scalar type Double but found Float"),
    (
        "F.conv2d(r(1,3,5,5),r(4,3,3,3),r(4).double())",
        RuntimeError,
        "Input type (float) and bias type (double) should be the same",
    ),
    ("F.conv2d(r(1,3,5,5).long(),r(4,3,3,3))", RuntimeError, "expected scalar type Long but found Float"),
    (
        "F.conv2d(r(1,3,0,5),r(4,3,3,3))",
        RuntimeError,
        "Calculated padded input size per channel: (0 x 5). Kernel size: (3 x 3). Kernel size can't be greate",
    ),
    (
        "F.conv2d(r(1,3,5,5),r(0,3,3,3))",
        RuntimeError,
        "Given groups=1, expected weight to be at least 1 at dimension 0, but got weight of size [0, 3, 3, 3]",
    ),
    (
        "F.conv1d(r(3,5,5,5),r(4,3,3))",
        RuntimeError,
        "Expected 2D (unbatched) or 3D (batched) input to conv1d, but got input of size: [3, 5, 5, 5]",
    ),
    (
        "F.conv3d(r(3,5,5),r(4,3,3,3,3))",
        RuntimeError,
        "Expected 4D (unbatched) or 5D (batched) input to conv3d, but got input of size: [3, 5, 5]",
    ),
    (
        "F.conv_transpose2d(r(2,3),r(4,3,3,3))",
        RuntimeError,
        "Expected 3D (unbatched) or 4D (batched) input to conv_transpose2d, but got input of size: [2, 3]",
    ),
    (
        "F.conv_transpose2d(r(1,3,5,5),r(4,3,3,3))",
        RuntimeError,
        "Given transposed=1, weight of size [4, 3, 3, 3], expected input[1, 3, 5, 5] to have 4 channels, but ",
    ),
    (
        "F.conv_transpose2d(r(1,4,5,5),r(4,3,3,3),r(4))",
        RuntimeError,
        "Given transposed=1, weight of size [4, 3, 3, 3], expected bias to be 1-dimensional with 3 elements, ",
    ),
    (
        "F.conv_transpose2d(r(1,4,5,5),r(4,3,3,3),output_padding=2)",
        RuntimeError,
        "output padding must be smaller than either stride or dilation, but got output_padding_height: 2 outp",
    ),
    (
        "F.conv_transpose2d(r(1,4,5,5),r(4,3,3,3),output_padding=1)",
        RuntimeError,
        "output padding must be smaller than either stride or dilation, but got output_padding_height: 1 outp",
    ),
    (
        "F.conv_transpose2d(r(1,4,1,1),r(4,3,1,1),padding=1)",
        RuntimeError,
        "Given input size per channel: (1 x 1). Calculated output size per channel: (-1 x -1). Output size is",
    ),
    (
        "F.conv_transpose2d(r(1,4,5,5),r(4,3,3,3),groups=3)",
        RuntimeError,
        "Given groups=3, expected weight to be divisible by 3 at dimension 0, but got weight of size [[4, 3, ",
    ),
    ("F.conv_transpose2d(r(1,4,5,5),r(4,3,3,3),stride=-1)", RuntimeError, "non-positive stride is not supported"),
    ("F.max_pool2d(r(2,3),2)", RuntimeError, "non-empty 3D or 4D (batch mode) tensor expected for input"),
    (
        "F.max_pool2d(r(2,3,5,5),(2,2,2))",
        RuntimeError,
        "max_pool2d: kernel_size must either be a single int, or a tuple of two ints",
    ),
    (
        "F.max_pool2d(r(2,3,5,5),2,padding=2)",
        RuntimeError,
        "pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 and dilation=1",
    ),
    ("F.max_pool2d(r(2,3,5,5),0)", RuntimeError, "stride should not be zero"),
    ("F.max_pool2d(r(2,3,5,5),2,stride=0)", RuntimeError, "stride should not be zero"),
    (
        "F.max_pool2d(r(2,3,5,5),7)",
        RuntimeError,
        "Given input size: (3x5x5). Calculated output size: (3x0x0). Output size is too small",
    ),
    (
        "F.max_pool2d(r(2,3,5,5),2,dilation=0)",
        RuntimeError,
        "dilation should be greater than zero, but got dilationH: 0 dilationW: 0",
    ),
    (
        "F.max_pool2d(r(2,0,5,5),2)",
        RuntimeError,
        "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:[2, 0, 5, 5]",
    ),
    (
        "F.max_pool2d(r(2,3,0,5),2)",
        RuntimeError,
        "Expected 3D or 4D (batch mode) tensor with optional 0 dim batch size for input, but got:[2, 3, 0, 5]",
    ),
    (
        "F.max_pool1d(r(2),2)",
        RuntimeError,
        "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:",
    ),
    (
        "F.max_pool1d(r(2,3,4,5),2)",
        RuntimeError,
        "max_pool1d: Expected 2D or 3D (batch mode) tensor with optional 0 dim batch size for input, but got:",
    ),
    ("F.max_pool1d(r(2,3,4),5)", RuntimeError, "max_pool1d() Invalid computed output size: 0"),
    (
        "F.max_pool1d(r(2,3,4),2,padding=2)",
        RuntimeError,
        "max_pool1d() padding should be at most half of kernel size, but got padding=2 and kernel_size=2",
    ),
    ("F.max_pool3d(r(2,3,4),2)", RuntimeError, "non-empty 4D or 5D (batch mode) tensor expected for input"),
    (
        "F.max_pool3d(r(2,3,4,4,4),6)",
        RuntimeError,
        "Given input size: (3x4x4x4). Calculated output size: (3x0x0x0). Output size is too small",
    ),
    ("F.avg_pool2d(r(2,3),2)", IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got -3)"),
    (
        "F.avg_pool2d(r(2,3,5,5),2,padding=2)",
        RuntimeError,
        "pad should be at most half of effective kernel size, but got pad=2, kernel_size=2 and dilation=1",
    ),
    (
        "F.avg_pool2d(r(2,3,5,5),7)",
        RuntimeError,
        "Given input size: (3x5x5). Calculated output size: (3x0x0). Output size is too small",
    ),
    ("F.avg_pool2d(r(2,3,5,5),2,divisor_override=0)", RuntimeError, "divisor must be not zero"),
    (
        "F.avg_pool1d(r(2,3,5),7)",
        RuntimeError,
        "Given input size: (3x1x5). Calculated output size: (3x1x0). Output size is too small",
    ),
    (
        "F.avg_pool1d(r(5),2)",
        RuntimeError,
        "Expected 2 to 3 dimensions, but got 1-dimensional tensor for argument #1 'self' (while checking argu",
    ),
    (
        "F.adaptive_avg_pool2d(r(2,3),2)",
        RuntimeError,
        "adaptive_avg_pool2d(): Expected 3D or 4D tensor, but got [2, 3]",
    ),
    ("F.adaptive_avg_pool2d(r(2,3,4,4),(2,2,2))", RuntimeError, "adaptive_avg_pool2d: output_size must be 2"),
    (
        "F.adaptive_avg_pool2d(r(2,3,0,4),(2,2))",
        RuntimeError,
        "adaptive_avg_pool2d(): Expected input to have non-zero size for non-batch dimensions, but input has ",
    ),
    (
        "F.adaptive_max_pool2d(r(2,3),2)",
        RuntimeError,
        "adaptive_max_pool2d(): Expected 3D or 4D tensor, but got: [2, 3]",
    ),
    (
        "F.adaptive_avg_pool2d(r(2,3,4,4),(-1,2))",
        RuntimeError,
        "adaptive_avg_pool2d: elements of output_size must be greater than or equal to 0 but received {-1, 2}",
    ),
    (
        "F.max_pool2d(torch.ones(1,1,4,4,dtype=torch.bool),2)",
        NotImplementedError,
        "\"max_pool2d\" not implemented for 'Bool'",
    ),
    (
        "F.adaptive_avg_pool2d(torch.ones(1,1,4,4,dtype=torch.long),2)",
        NotImplementedError,
        "\"adaptive_avg_pool2d\" not implemented for 'Long'",
    ),
    (
        "F.max_pool2d(torch.ones(1,1,4,4,dtype=torch.complex64),2)",
        NotImplementedError,
        "\"max_pool2d\" not implemented for 'ComplexFloat'",
    ),
    (
        "F.avg_pool2d(torch.ones(1,1,4,4,dtype=torch.complex64),2)",
        NotImplementedError,
        "\"avg_pool2d\" not implemented for 'ComplexFloat'",
    ),
    ("F.pad(r(2,3),(1,))", RuntimeError, "Padding length must be divisible by 2"),
    (
        "F.pad(r(2,3),(1,1,1,1,1,1))",
        RuntimeError,
        "Padding length should be less than or equal to two times the input dimension but got padding length ",
    ),
    ("F.pad(r(2,3),(-3,-1))", RuntimeError, "narrow(): length must be non-negative."),
    (
        "F.pad(r(2,3,4),(1,1,1,1,1,1),mode='reflect')",
        NotImplementedError,
        "Padding size 6 is not supported for 3D input tensor.\nSupported combinations for non-constant padding",
    ),
    (
        "F.pad(r(2,3,4),(4,1),mode='reflect')",
        RuntimeError,
        "Argument #4: Padding size should be less than the corresponding input dimension, but got: padding (4",
    ),
    ("F.pad(r(2,3,4),(5,1),mode='circular')", RuntimeError, "Padding value causes wrapping around more than once."),
    ("F.pad(r(2,3,4),(1,1),mode='foo')", NotImplementedError, "Unrecognised padding mode foo"),
    (
        "F.pad(r(2,3,4),(1,1),mode='reflect',value=2)",
        RuntimeError,
        'Padding mode "reflect" doesn\'t take in value argument',
    ),
    (
        "F.pad(r(3),(1,1),mode='replicate')",
        NotImplementedError,
        "Padding size 2 is not supported for 1D input tensor.\nSupported combinations for non-constant padding",
    ),
    (
        "F.interpolate(r(2,3,4),size=(2,2))",
        ValueError,
        "Input and output must have the same number of spatial dimensions, but got input with spatial dimensi",
    ),
    (
        "F.interpolate(r(2,3,4),scale_factor=(2,2))",
        ValueError,
        "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial d",
    ),
    ("F.interpolate(r(2,3,4))", ValueError, "either size or scale_factor should be defined"),
    ("F.interpolate(r(2,3,4),size=2,scale_factor=2)", ValueError, "only one of size or scale_factor should be defined"),
    (
        "F.interpolate(r(2,3),size=2)",
        NotImplementedError,
        "Input Error: Only 3D, 4D and 5D input Tensors supported (got 2D) for the modes: nearest | linear | b",
    ),
    (
        "F.interpolate(r(2,3,4),size=2,mode='bilinear')",
        NotImplementedError,
        "Got 3D input, but bilinear mode needs 4D input",
    ),
    (
        "F.interpolate(r(2,3,4,4),size=2,mode='linear')",
        NotImplementedError,
        "Got 4D input, but linear mode needs 3D input",
    ),
    (
        "F.interpolate(r(2,3,4,4),size=2,mode='foo')",
        NotImplementedError,
        "Input Error: Only 3D, 4D and 5D input Tensors supported (got 4D) for the modes: nearest | linear | b",
    ),
    (
        "F.interpolate(r(2,3,4,4),size=0,mode='nearest')",
        RuntimeError,
        "Input and output sizes should be greater than 0, but got input (H: 4, W: 4) output (H: 0, W: 0)",
    ),
    (
        "F.interpolate(r(2,3,4),size=2,mode='nearest',align_corners=True)",
        ValueError,
        "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | tri",
    ),
    (
        "F.interpolate(r(2,3,4),size=2,mode='linear',antialias=True)",
        ValueError,
        "Anti-alias option is restricted to bilinear, bicubic, and lanczos modes and requires a 4-D tensor as",
    ),
    (
        "F.grid_sample(r(1,2,3,3),r(2,3,3,2))",
        RuntimeError,
        "grid_sampler(): expected grid and input to have same batch size, but got input with sizes [1, 2, 3, ",
    ),
    (
        "F.grid_sample(r(1,2,3,3),r(1,3,3,3))",
        RuntimeError,
        "grid_sampler(): expected grid to have size 2 in last dimension, but got grid with sizes [1, 3, 3, 3]",
    ),
    (
        "F.grid_sample(r(1,2,3),r(1,3,3,3))",
        RuntimeError,
        "grid_sampler(): expected grid to have size 1 in last dimension, but got grid with sizes [1, 3, 3, 3]",
    ),
    (
        "F.grid_sample(r(1,2,3,3),r(1,3,3,2),mode='foo')",
        ValueError,
        "nn.functional.grid_sample(): expected mode to be 'bilinear', 'nearest' or 'bicubic', but got: 'foo'",
    ),
    (
        "F.grid_sample(r(1,2,3,3),r(1,3,3,2),padding_mode='foo')",
        ValueError,
        "nn.functional.grid_sample(): expected padding_mode to be 'zeros', 'border', or 'reflection', but got",
    ),
    (
        "F.grid_sample(r(1,2,0,3),r(1,3,3,2))",
        RuntimeError,
        "grid_sampler(): expected input to have non-empty spatial dimensions, but input has sizes [1, 2, 0, 3",
    ),
    (
        "F.affine_grid(r(1,2,2),(1,2,3,3))",
        ValueError,
        "Expected a batch of 2D affine matrices of shape Nx2x3 for size (1, 2, 3, 3). Got torch.Size([1, 2, 2",
    ),
    (
        "F.affine_grid(r(1,2,3),(1,2,3))",
        NotImplementedError,
        "affine_grid only supports 4D and 5D sizes, for 2D and 3D affine transforms, respectively. Got size (",
    ),
    ("F.affine_grid(r(1,2,3),(1,2,0,3))", ValueError, "Expected non-zero, positive output size. Got (1, 2, 0, 3)"),
    (
        "F.affine_grid(torch.ones(1,2,3).long(),(1,2,3,3))",
        ValueError,
        "Expected theta to have floating point type, but got torch.int64",
    ),
    ("F.unfold(r(2,3),2)", IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
    (
        "F.unfold(r(2,3,4,4),6)",
        RuntimeError,
        "Given input with spatial size (4, 4), kernel_size=(6, 6), dilation=(1, 1), padding=(0, 0), calculate",
    ),
    (
        "F.unfold(r(2,3,4,4),0)",
        RuntimeError,
        "kernel size should be greater than zero, but got kernel_height: 0 kernel_width: 0",
    ),
    (
        "F.fold(r(2,12,5),(3,3),(2,2))",
        RuntimeError,
        "Given output_size=(3, 3), kernel_size=(2, 2), dilation=(1, 1), padding=(0, 0), stride=(1, 1), expect",
    ),
    (
        "F.fold(r(2,13,4),(3,3),(2,2))",
        RuntimeError,
        "Expected size of input's dimension 1 to be divisible by the product of kernel_size, but got input.si",
    ),
    (
        "F.fold(r(13),(3,3),(2,2))",
        RuntimeError,
        "Expected 2D or 3D (batch mode) tensor for input with possibly 0 batch size and non-zero dimensions f",
    ),
    (
        "F.pixel_shuffle(r(3,3),2)",
        RuntimeError,
        "pixel_shuffle expects input to have at least 3 dimensions, but got input with 2 dimension(s)",
    ),
    (
        "F.pixel_shuffle(r(1,3,3,3),2)",
        RuntimeError,
        "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_facto",
    ),
    ("F.pixel_shuffle(r(1,4,3,3),0)", RuntimeError, "pixel_shuffle expects a positive upscale_factor, but got 0"),
    (
        "F.pixel_unshuffle(r(1,4,3,3),2)",
        RuntimeError,
        "pixel_unshuffle expects height to be divisible by downscale_factor, but input.size(-2)=3 is not divi",
    ),
    (
        "F.pixel_unshuffle(r(4,3),2)",
        RuntimeError,
        "pixel_unshuffle expects input to have at least 3 dimensions, but got input with 2 dimension(s)",
    ),
    (
        "F.channel_shuffle(r(1,4,3,3),3)",
        RuntimeError,
        "Number of channels must be divisible by groups. Got 4 channels and 3 groups.",
    ),
    (
        "F.channel_shuffle(r(1,4),2)",
        RuntimeError,
        "channel_shuffle expects input with > 2 dims, but got input with sizes [1, 4]",
    ),
    (
        "F.max_unpool2d(r(1,1,2,2),torch.ones(1,1,2,2),2)",
        RuntimeError,
        "elements in indices should be type int64 but got: Float",
    ),
    (
        "F.max_unpool2d(r(1,1,2,2),torch.ones(1,1,2,2).long()*99,2)",
        RuntimeError,
        "Found an invalid max index: 99 (output volumes are of size 4x4)",
    ),
    (
        "F.max_unpool2d(r(1,1,2,2),torch.ones(1,1,2,3).long(),2)",
        RuntimeError,
        "Expected shape of indices to be same as that of the input tensor ([1, 1, 2, 2]) but got indices tens",
    ),
    (
        "F.max_unpool2d(r(1,1,2,2),torch.ones(1,1,2,2).long(),2,output_size=(9,9))",
        ValueError,
        'invalid output_size "(9, 9)" (dim 0 must be between 2 and 6)',
    ),
    (
        "F.fractional_max_pool2d(r(1,1,5,5),2,output_size=7)",
        RuntimeError,
        "fractional_max_pool2d(): pool height 2 too large relative to input height 5",
    ),
    (
        "F.fractional_max_pool2d(r(1,1,5,5),2)",
        ValueError,
        "fractional_max_pool2d requires specifying either an output_size or an output_ratio",
    ),
]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("call,error,words", ERRORS, ids=[e[0] for e in ERRORS])
def test_error(call, error, words, on_device, errors_at_once):
    with pytest.raises(error) as raised:
        eval(call)
    assert str(raised.value).startswith(words)


def array(*shape, dtype="float64"):
    return np.random.default_rng(len(shape)).permutation(int(np.prod(shape))).reshape(shape).astype(dtype) / 7


TWO = ((2, 1), (1, 0), (1, 2))
KERNELS = [
    ("convolution", array(2, 4, 5, 6), array(6, 2, 3, 2), array(6), *TWO, False, (0, 0), 2),
    ("convolution", array(2, 4, 3, 4), array(4, 3, 3, 2), array(6), *TWO, True, (1, 0), 2),
    ("convolution", array(1, 2, 3), array(2, 2, 2), None, (3,), (2,), (1,), True, (2,), 1),
    ("_max_pool", array(2, 3, 5, 6), (3, 2), (2, 1), (1, 0), (1, 2), True),
    ("_max_pool_with_indices", array(2, 3, 7, 6), (3, 2), (2, 1), (1, 1), (2, 1), True),
    ("_adaptive_max_pool", array(2, 3, 5, 6), (2, 4)),
    ("_avg_pool", array(2, 3, 5, 6), (3, 2), (2, 1), (1, 0), True, False, None),
    ("_avg_pool", array(2, 3, 7), (3,), (2,), (1,), True, True, 5),
    ("_avg_pool_backward", array(2, 3, 3, 5), (5, 6), (3, 2), (2, 1), (1, 0), True, False, None),
    ("_adaptive_avg_pool", array(2, 3, 5, 6), (2, 4)),
    ("_adaptive_avg_pool_backward", array(2, 3, 2, 4), (5, 6)),
    ("constant_pad_nd", array(2, 3, 4), (1, 2, -1, 1), 1.5),
    ("_im2col", array(2, 3, 4, 5), (2, 3), (1, 1), (1, 0), (2, 1)),
    ("_col2im", array(2, 18, 9), (4, 5), (2, 3), (1, 1), (1, 0), (2, 1)),
]


@pytest.mark.parametrize(
    "name,args", [(k[0], k[1:]) for k in KERNELS], ids=[f"{k[0]}-{i}" for i, k in enumerate(KERNELS)]
)
def test_composite_matches_the_kernel(name, args):
    table = table_of(torch.device("cpu"))
    found, said = getattr(table, name)(*args), REGISTRY[name].composite(table, *args)
    for a, b in zip(
        found if isinstance(found, tuple) else (found,), said if isinstance(said, tuple) else (said,), strict=True
    ):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-10)


def test_backward_composites_match_the_kernels():
    table = table_of(torch.device("cpu"))
    x, args = array(2, 3, 5, 6), ((3, 2), (2, 1), (1, 0), (1, 2), True)
    out = table._max_pool(x, *args)
    g = array(*out.shape)
    np.testing.assert_allclose(
        table._max_pool_backward(g, x, out, *args), REGISTRY["_max_pool_backward"].composite(table, g, x, out, *args)
    )
    for transposed in (False, True):
        w = array(4, 3, 3, 2) if transposed else array(6, 2, 3, 2)
        x = array(2, 4, 5, 6)
        rest = (*TWO, transposed, (1, 0) if transposed else (0, 0), 2)
        g = array(*table.convolution(x, w, None, *rest).shape)
        found = table._convolution_backward(g, x, w, *rest, (True, True, True))
        said = REGISTRY["_convolution_backward"].composite(table, g, x, w, *rest, (True, True, True))
        for a, b in zip(found, said, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10)


# Large enough to be cut into blocks and shared among threads: many images, one image by rows, by filters, batch
# innermost, strided, grouped, depthwise, pointwise.
LARGE = [
    ((8, 16, 24, 24), (24, 16, 3, 3), 1, 1, 1),
    ((1, 32, 64, 60), (32, 32, 3, 3), 1, 1, 1),
    ((16, 64, 4, 4), (128, 64, 3, 3), 1, 1, 1),
    ((16, 48, 8, 8), (48, 48, 3, 3), 2, 1, 1),
    ((8, 16, 28, 28), (32, 8, 3, 3), 2, 1, 2),
    ((4, 48, 28, 28), (48, 1, 3, 3), 1, 1, 48),
    ((4, 64, 28, 28), (96, 64, 1, 1), 1, 0, 1),
    ((2, 256, 7, 7), (256, 256, 1, 1), 1, 0, 1),
    ((3, 3, 64, 64), (16, 3, 7, 7), 2, 3, 1),
]


@pytest.mark.parametrize("shape,kernel,stride,padding,groups", LARGE)
@pytest.mark.parametrize("transposed", [False, True])
def test_large_convolution(shape, kernel, stride, padding, groups, transposed):
    table = table_of(torch.device("cpu"))
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape, dtype=np.float32)
    if transposed:
        kernel = (shape[1], kernel[0] // groups, *kernel[2:])
    w, b = (
        rng.standard_normal(kernel, dtype=np.float32),
        rng.standard_normal(kernel[1] * groups if transposed else kernel[0], dtype=np.float32),
    )
    args = ((stride,) * 2, (padding,) * 2, (1, 1), transposed, (0, 0), groups)
    composite = functools.partial(REGISTRY["convolution"].composite, table)
    wide = [a.astype(np.float64) for a in (x, w, b)]
    out = table.convolution(x, w, b, *args)
    np.testing.assert_allclose(out, composite(*wide, *args), rtol=1e-4, atol=1e-3)
    g = rng.standard_normal(out.shape, dtype=np.float32)
    found = table._convolution_backward(g, x, w, *args, (True, True, True))
    said = REGISTRY["_convolution_backward"].composite(
        table, g.astype(np.float64), *wide[:2], *args, (True, True, True)
    )
    for a, b in zip(found, said, strict=True):
        assert a.dtype == np.float32 and a.flags.c_contiguous
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-3 * max(1, abs(b).max() / 50))


def test_kernels_leave_their_inputs_alone():
    x = torch.randn(2, 3, 8, 8)
    before = x.clone()
    F.conv2d(x, torch.randn(4, 3, 3, 3), padding=1)
    F.max_pool2d(x, 2)
    F.avg_pool2d(x, 1)
    F.interpolate(x, 8)
    F.pad(x, (0, 0)).add_(1)
    F.adaptive_avg_pool2d(x, 8).add_(1)
    assert torch.equal(x, before)


def test_max_pool_gives_the_first_of_equals_and_nan():
    x = torch.tensor([[[[1.0, 1.0], [1.0, float("nan")]], [[2.0, 3.0], [3.0, 0.0]]]], requires_grad=True)
    F.max_pool2d(x, 2).nan_to_num().sum().backward()
    assert x.grad[0, 1].tolist() == [[0, 1], [0, 0]]
    assert F.max_pool2d(x, 2, return_indices=True)[1].flatten().tolist() == [3, 1]
    y = torch.ones(1, 1, 2, 2, requires_grad=True)
    F.max_pool2d(y, 2).sum().backward()
    assert y.grad.flatten().tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("padding,ceil_mode", [(0, False), (1, True)])
def test_large_pooling_is_that_of_its_planes(padding, ceil_mode):
    """Large inputs are pooled some planes at a time."""
    torch.manual_seed(0)
    x = torch.randn(8, 40, 41, 40)
    window = (3, 2, padding)
    for pool in (lambda t: F.max_pool2d(t, *window, 1, ceil_mode), lambda t: F.avg_pool2d(t, *window, ceil_mode)):
        whole, pieces = x.clone().requires_grad_(), x.clone().requires_grad_()
        out, parts = pool(whole), torch.cat([pool(piece) for piece in pieces.split(1)])
        assert torch.equal(out, parts)
        g = torch.randn(out.shape)
        out.backward(g)
        parts.backward(g)
        assert torch.equal(whole.grad, pieces.grad)


# (transposed, groups, stride, shape of the gradient, what it should have been and where)
_WRONG = [
    (False, 1, 1, (2, 6, 5, 6), (2, 6, 5)),
    (False, 1, 1, (2, 6, 6, 7), (3, 6, 7)),
    (False, 1, 2, (2, 6, 4, 3), (2, 3, 4)),
    (False, 2, 1, (2, 5, 6, 6), (1, 6, 5)),
    (False, 1, 1, (3, 6, 6, 6), (0, 2, 3)),
    (True, 1, 1, (2, 6, 10, 9), (3, 10, 9)),
]


@pytest.mark.parametrize(("transposed", "groups", "stride", "shape", "words"), _WRONG)
def test_gradients_of_convolutions_that_have_another_size(device, transposed, groups, stride, shape, words):
    x = torch.randn(2, 4, 8, 8, device=device)
    weight = torch.randn((4, 6, 3, 3) if transposed else (6, 4 // groups, 3, 3), device=device)
    g, (place, want, got) = torch.randn(shape, device=device), words
    rest = [6], [stride] * 2, [0, 0], [1, 1], transposed, [0, 0], groups
    message = rf"dimension 4 and tensor.size\[{place}\] == {want} but got: .* tensor.size\[{place}\] = {got}$"
    for mask in ([True, True, True], [False, True, False]):
        with pytest.raises(RuntimeError, match=message):
            torch.ops.aten.convolution_backward(g, x, weight, *rest, mask)
    nothing = torch.ops.aten.convolution_backward(g, x, weight, *rest, [False] * 3)
    assert list(nothing) == [None] * 3


def test_gradients_of_convolutions_of_rows_and_of_other_ranks(device):
    x, weight = torch.randn(2, 4, 8, device=device), torch.randn(6, 4, 3, device=device)
    rest, mask = ([6], [1], [0], [1], False, [0], 1), [True, True, True]
    right = torch.ops.aten.convolution_backward(torch.randn(2, 6, 6, device=device), x, weight, *rest, mask)
    assert [tuple(part.shape) for part in right] == [(2, 4, 8), (6, 4, 3), (6,)]
    with pytest.raises(RuntimeError, match=r"dimension 4 and tensor.size\[3\] == 6 but got: .* = 5"):
        torch.ops.aten.convolution_backward(torch.randn(2, 6, 5, device=device), x, weight, *rest, mask)
    with pytest.raises(RuntimeError, match="the same number of dimensions, but got: 3 and 2"):
        torch.ops.aten.convolution_backward(torch.randn(6, 6, device=device), x, weight, *rest, mask)
    with pytest.raises(RuntimeError, match="to have 4 channels, but got 3 channels instead"):
        torch.ops.aten.convolution_backward(torch.randn(2, 6, 6, device=device), x[:, :3], weight, *rest, mask)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
@pytest.mark.parametrize(
    ("dims", "mode"), [(2, "nearest"), (2, "bilinear"), (2, "bicubic"), (3, "nearest"), (3, "bilinear")]
)
def test_samples_outside_of_the_image_read_nothing_of_it(dims, mode, bad, device):
    image = torch.full((1, 1, *[2] * dims), bad, device=device).requires_grad_()
    grid = torch.full((1, *[1] * dims, dims), 5.0, device=device).requires_grad_()
    found = F.grid_sample(image, grid, mode, align_corners=True)
    assert found.item() == 0
    found.sum().backward()
    assert not image.grad.any() and not grid.grad.any()
    nowhere = F.grid_sample(image, grid.detach() * math.nan, mode, align_corners=True)
    assert nowhere.isnan().item() if dims == 2 and mode != "nearest" else nowhere.item() == 0
    if mode == "bicubic":
        return
    # A corner beyond the border has no share, and no value.
    corner = torch.zeros(1, 1, *[2] * dims, device=device)
    corner.view(-1)[0] = bad
    edge = torch.full((1, *[1] * dims, dims), 1.0, device=device)
    for padding in "border", "reflection":
        assert F.grid_sample(corner, edge, mode, padding, align_corners=True).item() == 0


@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_resampling_to_more_places_than_float32_tells_apart(mode, device):
    count = (1 << 22) + 4
    x = torch.tensor([0.0, 1.0], device=device).repeat(count // 2)[None, None]
    end = F.interpolate(x, size=4 * count, mode=mode)[0, 0, -8:].tolist()
    assert end == ([0.375, 0.125, 0.125, 0.375, 0.625, 0.875, 1.0, 1.0] if mode == "linear" else [0.0] * 4 + [1.0] * 4)


@pytest.mark.parametrize("size", [100001, 30000])
@pytest.mark.parametrize("mode", ["linear", "nearest"])
def test_gradients_of_resampled_long_signals(mode, size, device):
    """No matrix of all weights is made. The gradient is the transpose: y . f(x) = x . f'(y)."""
    x = torch.linspace(-1, 1, 60000, device=device).sin()[None, None].requires_grad_()
    out = F.interpolate(x, size=size, mode=mode)
    y = torch.linspace(0, 9, size, device=device).cos()[None, None]
    (gradient,) = torch.autograd.grad(out, x, y)
    one, other = (out.detach() * y).double().sum().item(), (x.detach() * gradient).double().sum().item()
    assert one == pytest.approx(other, rel=1e-4)
