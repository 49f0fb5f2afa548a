"""Errors of shape, index, reduction and sorting ops have PyTorch's messages (recorded from torch 2.13)."""

from __future__ import annotations

import builtins
import functools

import pytest

import torchlite as torch

CASES = [
    ("torch.gather(x,0,I([[5]]))", "RuntimeError", "index 5 is out of bounds for dimension 0 with size 3"),
    (
        "torch.gather(x,0,I([5]))",
        "RuntimeError",
        "Index tensor must have the same number of dimensions as input tensor",
    ),
    ("torch.gather(x,0,I([[0.]]))", "RuntimeError", "gather(): Expected dtype int32/int64 for index"),
    (
        "torch.gather(x,0,I([[0,1,2,3,4]]))",
        "RuntimeError",
        "Size does not match at dimension 1 expected index [1, 5] to be no larger than self [3, 4] apart from "
        "dimension 0",
    ),
    ("torch.gather(x,0,I([[-1]]))", "RuntimeError", "index -1 is out of bounds for dimension 0 with size 3"),
    ("torch.scatter(x,0,I([[5]]),1.)", "RuntimeError", "index 5 is out of bounds for dimension 0 with size 3"),
    ("torch.scatter(x,0,I([[5]]),x)", "RuntimeError", "index 5 is out of bounds for dimension 0 with size 3"),
    (
        "torch.scatter(x,0,I([[0,0,0,0,0]]),x)",
        "RuntimeError",
        "Expected index [1, 5] to be no larger than self [3, 4] apart from dimension 0 and to be no larger size than "
        "src [3, 4]",
    ),
    (
        "torch.scatter(x,0,I([[0]]),x.double())",
        "RuntimeError",
        "scatter(): Expected self.dtype to be equal to src.dtype",
    ),
    ("torch.scatter_add(x,0,I([[5]]),x)", "RuntimeError", "index 5 is out of bounds for dimension 0 with size 3"),
    ("torch.scatter_add(x,0,I([[-1]]),x)", "RuntimeError", "index -1 is out of bounds for dimension 0 with size 3"),
    (
        "torch.scatter_reduce(x,0,I([[5]]),x,'sum')",
        "RuntimeError",
        "index 5 is out of bounds for dimension 0 with size 3",
    ),
    (
        "torch.scatter_reduce(x,0,I([[0]]),x,'foo')",
        "RuntimeError",
        "reduce argument must be either sum, prod, mean, amax or amin, got foo",
    ),
    ("torch.scatter(x,0,I([[0]]),x,reduce='foo')", "RuntimeError", "reduce argument must be either add or multiply."),
    ("torch.index_select(x,0,I([5]))", "IndexError", "index out of range in self"),
    ("torch.index_select(x,0,I([[0]]))", "IndexError", "index_select(): Index is supposed to be a vector"),
    ("torch.index_select(x,0,I([0.]))", "RuntimeError", "index_select(): Expected dtype int32 or int64 for index"),
    ("torch.index_select(x,0,I([-1]))", "IndexError", "index out of range in self"),
    (
        "torch.index_select(x,2,I([-1]))",
        "IndexError",
        "Dimension out of range (expected to be in range of [-2, 1], but got 2)",
    ),
    ("torch.index_add(x,0,I([5]),x[:1])", "RuntimeError", "index 5 is out of bounds for dimension 0 with size 3"),
    (
        "torch.index_add(x,0,I([0,1]),x[:1])",
        "RuntimeError",
        "index_add_(): Number of indices (2) should be equal to source.size(dim): (1), for dim: 0",
    ),
    (
        "torch.index_add(x,0,I([0]),x[:1].double())",
        "RuntimeError",
        "index_add_(): self (Float) and source (Double) must have the same scalar type",
    ),
    (
        "torch.index_add(x,0,I([0]),x[:1,:2])",
        "RuntimeError",
        "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = [3, "
        "4] source.shape = [1, 2]",
    ),
    (
        "torch.index_copy(x,0,I([5]),x[:1])",
        "IndexError",
        "index_copy_(): index 5 is out of bounds for dimension 0 with size 3",
    ),
    (
        "torch.index_copy(x,0,I([0,1]),x[:1])",
        "IndexError",
        "index_copy_(): Number of indices (2) should be equal to source.size(dim) (1)",
    ),
    (
        "torch.index_copy(x,0,I([0]),x[:1].double())",
        "RuntimeError",
        "index_copy_(): self and source expected to have the same dtype, but got (self) Float and (source) Double",
    ),
    (
        "torch.index_copy(x,0,I([0]),x[:1,:2])",
        "RuntimeError",
        "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: 4 at "
        "dimension 0 and source slice shape: 2 at dimension 0.",
    ),
    ("torch.index_fill(x,0,I([5]),1)", "IndexError", "index 5 is out of bounds for dimension 0 with size 3"),
    (
        "torch.index_fill(x,0,I([0]),I([1.]))",
        "RuntimeError",
        "index_fill_ only supports a 0-dimensional value tensor, but got tensor with 1 dimension(s).",
    ),
    ("torch.index_reduce(x,0,I([5]),x[:1],'prod')", "IndexError", "index out of range in self"),
    (
        "torch.index_reduce(x,0,I([0]),x[:1],'sum')",
        "RuntimeError",
        "index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got sum.",
    ),
    ("torch.take(x,I([20]))", "IndexError", "out of range: tried to access index 20 on a tensor of 12 elements."),
    ("torch.take(x,I([-20]))", "IndexError", "out of range: tried to access index -20 on a tensor of 12 elements."),
    ("torch.take(x,I([0.]))", "RuntimeError", "take(): Expected a long tensor for index, but got Float"),
    (
        "torch.Tensor.put(x,I([20]),I([1.]))",
        "IndexError",
        "out of range: tried to access index 20 on a tensor of 12 elements.",
    ),
    (
        "torch.Tensor.put(x,I([0]),I([1.,2.]))",
        "IndexError",
        "put_(): Expected source and index to have the same number of elements, but got source.numel() = 2, "
        "index.numel() = 1",
    ),
    (
        "torch.Tensor.put(x,I([0]),I([1]))",
        "RuntimeError",
        "put_(): self and source expected to have the same dtype, but got self.dtype = Float and source.dtype = Long",
    ),
    ("torch.select(x,0,5)", "IndexError", "select(): index 5 out of range for tensor of size [3, 4] at dimension 0"),
    ("torch.select(x,5,0)", "IndexError", "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
    ("torch.select(I(1.),0,0)", "IndexError", "select() cannot be applied to a 0-dim tensor."),
    ("torch.narrow(x,0,2,5)", "RuntimeError", "start (2) + length (5) exceeds dimension size (3)."),
    ("torch.narrow(x,0,5,1)", "IndexError", "start out of range (expected to be in range of [-3, 3], but got 5)"),
    ("torch.narrow(x,0,1,-1)", "RuntimeError", "narrow(): length must be non-negative."),
    ("torch.masked_select(x,x)", "RuntimeError", "masked_select: expected BoolTensor for mask"),
    (
        "torch.masked_fill(x,x,1)",
        "RuntimeError",
        "masked_fill_ only supports boolean masks, but got mask with dtype float",
    ),
    (
        "torch.masked_fill(x,x>0,I([1.]))",
        "RuntimeError",
        "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with 1 dimension(s).",
    ),
    ("torch.masked_fill(x,x>0,1j)", "RuntimeError", "value cannot be converted to type float without overflow"),
    ("torch.masked_fill(x,x>0,1e40)", "RuntimeError", "value cannot be converted to type float without overflow"),
    (
        "torch.masked_fill(I([1]).to(torch.uint8),I([1])>0,I(256))",
        "RuntimeError",
        "value cannot be converted to type uint8_t without overflow",
    ),
    (
        "torch.masked_fill(I([1]),I([1])>0,x.new_tensor(float('inf')))",
        "RuntimeError",
        "value cannot be converted to type int64_t without overflow",
    ),
    (
        "torch.masked_fill(x,(x>0)[:2],1)",
        "RuntimeError",
        "The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
    ),
    ("torch.masked_scatter(x,x>0,I([1.]))", "RuntimeError", "Number of elements of source < number of ones in mask"),
    (
        "torch.masked_scatter(x,x,I([1.]))",
        "RuntimeError",
        "masked_scatter_ only supports boolean masks, but got mask with dtype Float",
    ),
    (
        "torch.masked_scatter(x,x>0,I([1]))",
        "RuntimeError",
        "masked_scatter: expected self and source to have same dtypes but gotFloat and Long",
    ),
    ("torch.chunk(x,0)", "RuntimeError", "chunk expects `chunks` to be greater than 0, got: 0"),
    ("torch.split(x,-1)", "RuntimeError", "split expects split_size be non-negative, but got split_size=-1"),
    (
        "torch.split(x,0)",
        "RuntimeError",
        "split_size can only be 0 if dimension size is 0, but got dimension size of 3",
    ),
    (
        "torch.split(x,[1,1])",
        "RuntimeError",
        "split_with_sizes expects split_sizes to sum exactly to 3 (input tensor's size at dimension 0), but got "
        "split_sizes=[1, 1]",
    ),
    ("torch.tensor_split(x,0)", "RuntimeError", "number of sections must be larger than 0, got 0"),
    (
        "torch.hsplit(x,3)",
        "RuntimeError",
        "torch.hsplit attempted to split along dimension 1, but the size of the dimension 4 is not divisible by the "
        "split_size 3!",
    ),
    (
        "torch.hsplit(I(1.),3)",
        "RuntimeError",
        "torch.hsplit requires a tensor with at least 1 dimension, but got a tensor with 0 dimensions!",
    ),
    (
        "torch.vsplit(x[0],3)",
        "RuntimeError",
        "torch.vsplit requires a tensor with at least 2 dimension, but got a tensor with 1 dimensions!",
    ),
    (
        "torch.dsplit(x,3)",
        "RuntimeError",
        "torch.dsplit requires a tensor with at least 3 dimension, but got a tensor with 2 dimensions!",
    ),
    ("torch.unbind(I(1.))", "IndexError", "Dimension specified as 0 but tensor has no dimensions"),
    (
        "torch.stack([x,x[:1]])",
        "RuntimeError",
        "stack expects each tensor to be equal size, but got [3, 4] at entry 0 and [1, 4] at entry 1",
    ),
    ("torch.stack([])", "RuntimeError", "stack expects a non-empty TensorList"),
    (
        "torch.cat([x,x[:1,:2]])",
        "RuntimeError",
        "Sizes of tensors must match except in dimension 0. Expected size 4 but got size 2 for tensor number 1 in "
        "the list.",
    ),
    ("torch.cat([])", "ValueError", "torch.cat(): expected a non-empty list of Tensors"),
    ("torch.cat([x,x[0]])", "RuntimeError", "Tensors must have same number of dimensions: got 2 and 1"),
    ("torch.cat([I(1.)])", "RuntimeError", "zero-dimensional tensor (at position 0) cannot be concatenated"),
    ("torch.topk(x,10)", "RuntimeError", "selected index k out of range"),
    ("torch.topk(x,-1)", "RuntimeError", "selected index k out of range"),
    ("torch.kthvalue(x,10)", "RuntimeError", "kthvalue(): selected number k out of range for dimension 1"),
    ("torch.kthvalue(x,0)", "RuntimeError", "kthvalue(): selected number k out of range for dimension 1"),
    ("torch.sort(x,3)", "IndexError", "Dimension out of range (expected to be in range of [-2, 1], but got 3)"),
    ("torch.median(torch.zeros(0),0)", "IndexError", "median(): Expected reduction dim 0 to have non-zero size."),
    (
        "torch.max(torch.zeros(0))",
        "RuntimeError",
        "max(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
        "'dim' argument.",
    ),
    ("torch.max(torch.zeros(0),0)", "IndexError", "max(): Expected reduction dim 0 to have non-zero size."),
    ("torch.max(torch.zeros(0),0).values", "IndexError", "max(): Expected reduction dim 0 to have non-zero size."),
    ("torch.mode(torch.zeros(0),0)", "IndexError", "mode(): Expected reduction dim 0 to have non-zero size."),
    (
        "torch.aminmax(torch.zeros(0))",
        "RuntimeError",
        "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.",
    ),
    ("torch.cummax(x,3)", "IndexError", "Dimension out of range (expected to be in range of [-2, 1], but got 3)"),
    ("torch.quantile(x,2.)", "RuntimeError", "quantile() q must be in the range [0, 1] but got 2"),
    ("torch.quantile(x,-1.)", "RuntimeError", "quantile() q must be in the range [0, 1] but got -1"),
    ("torch.quantile(x.long(),.5)", "RuntimeError", "quantile() input tensor must be either float or double dtype"),
    (
        "torch.quantile(x,I([.5]).double())",
        "RuntimeError",
        "quantile() q tensor must be same dtype as the input tensor",
    ),
    (
        "torch.quantile(x,.5,interpolation='foo')",
        "RuntimeError",
        "quantile() interpolation must be one of linear, lower, higher, midpoint or nearest, but got foo",
    ),
    ("torch.var(x.long())", "RuntimeError", "std and var only support floating point and complex dtypes"),
    ("torch.std(x.long())", "RuntimeError", "std and var only support floating point and complex dtypes"),
    ("torch.bincount(x)", "NotImplementedError", "\"bincount_cpu\" not implemented for 'Float'"),
    ("torch.bincount(I([-1]))", "RuntimeError", "bincount only supports 1-d non-negative integral inputs."),
    (
        "torch.bincount(I([1]),weights=I([1.,2.]))",
        "RuntimeError",
        "weights should be 1-d and have the same length as input",
    ),
    ("torch.bincount(I([1]),minlength=-1)", "RuntimeError", "minlength should be >= 0"),
    (
        "torch.bincount(I([0,2**63-1]))",
        "RuntimeError",
        "maximum value of input overflowed, it should be < 9223372036854775807 but got 9223372036854775807",
    ),
    (
        "torch.bincount(I([2**63-1]),I([1.]),minlength=3)",
        "RuntimeError",
        "maximum value of input overflowed, it should be < 9223372036854775807 but got 9223372036854775807",
    ),
    (
        "torch.prelu(x[0],x[:2,:2])",
        "RuntimeError",
        "Mismatch of parameter numbers and input channel size. Found parameter numbers = 4 and channel size = 1.",
    ),
    ("torch.prelu(x[0,0],x[:2,:2])", "RuntimeError", "Not allow zero-dim input tensor."),
    (
        "torch.prelu(x,x[:2,:2])",
        "RuntimeError",
        "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = 2",
    ),
    (
        "torch.prelu(x,x[:1,:1])",
        "RuntimeError",
        "prelu: Expected `weight` to be a scalar or 1D tensor, but got: ndim = 2",
    ),
    ("torch.bucketize(x,x)", "RuntimeError", "boundaries tensor must be 1 dimension, but got dim(2)"),
    (
        "torch.searchsorted(I([1.,2.]),x,right=True,side='left')",
        "RuntimeError",
        "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True",
    ),
    (
        "torch.searchsorted(x,x[:2])",
        "RuntimeError",
        "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
        "tensor and input value tensor must match, but we got boundaries tensor [3, 4] and input value tensor [2, 4]",
    ),
    ("torch.histc(x,0)", "RuntimeError", "torch.histogram(): bins must be > 0, but got 0 for dimension 0"),
    ("torch.histc(x,2,5,1)", "RuntimeError", "torch.histc: max must be larger than min"),
    ("torch.histc(I([float('nan')]),2)", "RuntimeError", "torch.histc: range of [nan, nan] is not finite"),
    ("torch.histogram(x,0)", "RuntimeError", "torch.histogram(): bins must be > 0, but got 0 for dimension 0"),
    ("torch.tril(x[0])", "RuntimeError", "tril: input tensor must have at least 2 dimensions"),
    ("torch.diag(x[None])", "RuntimeError", "diag(): Supports 1D or 2D tensors. Got 3D"),
    ("torch.diagonal(x,0,0,0)", "RuntimeError", "diagonal dimensions cannot be identical 0, 0"),
    ("torch.diagonal(x[0])", "IndexError", "Dimension out of range (expected to be in range of [-1, 0], but got 1)"),
    ("torch.diag_embed(x,0,0,0)", "RuntimeError", "diagonal dimensions cannot be identical 0, 0"),
    ("torch.trace(x[0])", "RuntimeError", "trace: expected a matrix, but got tensor with dim 1"),
    ("torch.rot90(x,1,[0,0])", "RuntimeError", "expected rotation dims to be different, but got dim0 = 0 and dim1 = 0"),
    ("torch.rot90(x,1,[0])", "RuntimeError", "expected total rotation dims == 2, but got dims = 1"),
    ("torch.rot90(x[0],1)", "RuntimeError", "expected total dims >= 2, but got total dims = 1"),
    ("torch.fliplr(x[0])", "RuntimeError", "Input must be >= 2-d."),
    ("torch.flip(x,[0,0])", "RuntimeError", "dim 0 appears multiple times in the list of dims"),
    ("torch.roll(x,(1,2),0)", "RuntimeError", "shifts and dimensions must align. shifts: 2, dims:1"),
    ("torch.roll(x,(),0)", "RuntimeError", "`shifts` required"),
    (
        "x.repeat(2)",
        "RuntimeError",
        "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
    ),
    (
        "torch.repeat_interleave(x,I([1,2]),0)",
        "RuntimeError",
        "repeats must have the same size as input along dim, but got repeats.size(0) = 2 and input.size(0) = 3",
    ),
    ("torch.repeat_interleave(x,-1)", "RuntimeError", "Repeats must be non-negative"),
    ("torch.repeat_interleave(x,I([-1]))", "RuntimeError", "repeats can not be negative"),
    (
        "torch.repeat_interleave(x,I([1.]))",
        "NotImplementedError",
        "\"repeat_interleave_cpu\" not implemented for 'Float'",
    ),
    ("x.unfold(0,5,1)", "RuntimeError", "maximum size for tensor at dimension 0 is 3 but size is 5"),
    ("x.unfold(0,1,0)", "RuntimeError", "step is 0 but must be > 0"),
    ("x.unfold(0,-1,1)", "RuntimeError", "size is -1 but must be >= 0"),
    ("torch.movedim(x,(0,1),(0,0))", "RuntimeError", "movedim: repeated dim in `destination` ([0, 0])"),
    (
        "torch.movedim(x,(0,1),(0,))",
        "RuntimeError",
        "movedim: Invalid source or destination dims: source ([0, 1] dims) should contain the same number of dims as "
        "destination ([0] dims)",
    ),
    ("torch.flatten(x,1,0)", "RuntimeError", "flatten() has invalid args: start_dim cannot come after end_dim"),
    (
        "torch.unflatten(x,1,(3,3))",
        "RuntimeError",
        "unflatten: Provided sizes [3, 3] don't multiply up to the size of dim 1 (4) in the input tensor",
    ),
    ("torch.unflatten(x,1,())", "RuntimeError", "unflatten: sizes must be non-empty"),
    ("x.reshape(5)", "RuntimeError", "shape '[5]' is invalid for input of size 12"),
    ("x.reshape(-1,5)", "RuntimeError", "shape '[-1, 5]' is invalid for input of size 12"),
    ("x.reshape(-1,-1)", "RuntimeError", "only one dimension can be inferred"),
    (
        "x.t().view(12)",
        "RuntimeError",
        "view size is not compatible with input tensor's size and stride (at least one dimension spans across two "
        "contiguous subspaces). Use .reshape(...) instead.",
    ),
    (
        "x.permute(0)",
        "RuntimeError",
        "permute(sparse_coo): number of dimensions in the tensor input does not match the length of the desired "
        "ordering of dimensions i.e. input.dim() = 2 is not equal to len(dims) = 1",
    ),
    ("x.permute(0,0)", "RuntimeError", "permute(): duplicate dims are not allowed."),
    (
        "x.expand(2,3)",
        "RuntimeError",
        "The expanded size of the tensor (3) must match the existing size (4) at non-singleton dimension 1.  Target "
        "sizes: [2, 3].  Tensor sizes: [3, 4]",
    ),
    (
        "x.expand(4)",
        "RuntimeError",
        "expand(torch.FloatTensor{[3, 4]}, size=[4]): the number of sizes provided (1) must be greater or equal to "
        "the number of dimensions in the tensor (2)",
    ),
    (
        "x.expand(-1,3,4)",
        "RuntimeError",
        "The expanded size of the tensor (-1) isn't allowed in a leading, non-existing dimension 0",
    ),
    (
        "x[:,:3].view(torch.float64)",
        "RuntimeError",
        "self.size(-1) must be divisible by 2 to view Float as Double (different element sizes), but got 3",
    ),
    ("torch.view_as_complex(x[:,:3])", "RuntimeError", "Tensor must have a last dimension of size 2"),
    ("torch.view_as_real(x)", "RuntimeError", "view_as_real is only supported for complex tensors"),
    ("torch.t(x[None])", "RuntimeError", "t() expects a tensor with <= 2 dimensions, but self is 3D"),
    (
        "x[None].H",
        "RuntimeError",
        "tensor.H is only supported on matrices (2-D tensors). Got 3-D tensor. For batches of matrices, consider "
        "using tensor.mH",
    ),
    ("x[0].mT", "RuntimeError", "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor."),
    (
        "torch.as_strided(x,(5,5),(5,5))",
        "RuntimeError",
        "setStorage: sizes [5, 5], strides [5, 5], storage offset 0, and itemsize 4 requiring a storage size of 164 "
        "are out of bounds for storage of size 48",
    ),
    ("torch.as_strided(x,(5,5),(5,))", "RuntimeError", "mismatch in length of strides and shape"),
    (
        "torch.slice_scatter(x,x[:1])",
        "RuntimeError",
        "expected src to have a size equal to the slice of self. src size = [1, 4], slice size = [3, 4]",
    ),
    (
        "torch.select_scatter(x,x,0,0)",
        "RuntimeError",
        "expected src to have a size equal to the slice of self. src size = [3, 4], slice size = [4]",
    ),
    (
        "torch.diagonal_scatter(x,x)",
        "RuntimeError",
        "expected src to have a size equal to the slice of self. src size = [3, 4], slice size = [3]",
    ),
    (
        "torch.as_strided_scatter(x,x,(2,2),(1,1))",
        "RuntimeError",
        "expected src to have a size equal to the slice of self. src size = [3, 4], slice size = [2, 2]",
    ),
    ("torch.diff(x,-1)", "RuntimeError", "order must be non-negative but got -1"),
    ("torch.diff(I(1.))", "RuntimeError", "diff expects input to be at least one-dimensional"),
    (
        "torch.gradient(x[:1])",
        "RuntimeError",
        "torch.gradient expected each dimension size to be at least edge_order+1",
    ),
    (
        "torch.gradient(x,spacing=[1.])",
        "RuntimeError",
        "torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to 'self.dim() = 2', "
        "since dim argument was not given, but got a list of length 1",
    ),
    ("torch.trapezoid(x,x[0,:2])", "RuntimeError", "trapezoid: There must be one `x` value for each sample point"),
    ("torch.trapezoid(I(1.))", "IndexError", "Dimension specified as -1 but tensor has no dimensions"),
    ("torch.cumulative_trapezoid(I(1.))", "IndexError", "slice() cannot be applied to a 0-dim tensor."),
    ("x.sum_to_size(2)", "RuntimeError", "size {[2]} is not expandable to size {[3, 4]}."),
    ("torch.isin(x,I([1j]))", "RuntimeError", "Unsupported input type encountered for isin(): ComplexFloat"),
    ("torch.unique(x,dim=5)", "IndexError", "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
    (
        "torch.block_diag(x[None])",
        "RuntimeError",
        "torch.block_diag: Input tensors must have 2 or fewer dimensions. Input 0 has 3 dimensions",
    ),
    ("torch.zeros(3).fill_diagonal_(1)", "RuntimeError", "dimensions must larger than 1"),
    ("torch.zeros(3,3,2).fill_diagonal_(1)", "RuntimeError", "all dimensions of input must be of equal length"),
    ("torch.is_nonzero(x)", "RuntimeError", "Boolean value of Tensor with more than one value is ambiguous"),
    ("torch.is_nonzero(torch.zeros(0))", "RuntimeError", "Boolean value of Tensor with no values is ambiguous"),
    ("torch.equal(x,1)", "TypeError", "equal(): argument 'other' (position 2) must be Tensor, not int"),
    (
        "torch.segment_reduce(x,'foo',lengths=I([1,2]))",
        "RuntimeError",
        "reduce argument must be either sum, prod, mean, amax or amin, got foo",
    ),
    (
        "torch.segment_reduce(x,'sum',lengths=I([1,1]))",
        "RuntimeError",
        "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when !unsafe.",
    ),
    ("torch.segment_reduce(x,'sum')", "RuntimeError", "segment_reduce(): Either lengths or offsets must be defined."),
    (
        "torch.take_along_dim(x,I([0]),0)",
        "RuntimeError",
        "torch.take_along_dim(): input and indices should have the same number of dimensions, but got 2 dimensions "
        "for input, and 1 dimensions for indices",
    ),
    (
        "torch.take_along_dim(x,I([[0.]]),0)",
        "RuntimeError",
        "torch.take_along_dim(): dtype of indices should be Long but got Float",
    ),
    ("torch.nansum(x.to(torch.complex64))", "RuntimeError", "nansum on CPU does not support complex inputs"),
    ("torch.count_nonzero(x,(0,0))", "RuntimeError", "dim 0 appears multiple times in the list of dims"),
    ("torch.logsumexp(x,(0,0))", "RuntimeError", "dim 0 appears multiple times in the list of dims"),
    ("torch.cumsum(x,5)", "IndexError", "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
    (
        "torch.histogramdd(x,[2,2])",
        "RuntimeError",
        "histogramdd: The size of bins must be equal to the innermost dimension of the input.",
    ),
    ("torch.squeeze(x,(0,0))", "RuntimeError", "dim 0 appears multiple times in the list of dims"),
    (
        "torch.broadcast_to(x,(2,))",
        "RuntimeError",
        "expand(torch.FloatTensor{[3, 4]}, size=[2]): the number of sizes provided (1) must be greater or equal to "
        "the number of dimensions in the tensor (2)",
    ),
    (
        "torch.broadcast_tensors(x,x[:2])",
        "RuntimeError",
        "The size of tensor a (3) must match the size of tensor b (2) at non-singleton dimension 0",
    ),
    ("torch.swapaxes(x,0,5)", "IndexError", "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
    ("torch.nonzero_static(x,size=-1)", "RuntimeError", "nonzero_static: 'size' must be an non-negative integer"),
    (
        "torch.unravel_index(I([2.]),(3,4))",
        "TypeError",
        "expected 'indices' to be integer dtype, but got torch.float32",
    ),
    ("torch.std(x,5)", "IndexError", "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
    ("torch.var(x,dim=(0,0))", "RuntimeError", "dim 0 appears multiple times in the list of dims"),
    ("torch.argsort(x,5)", "IndexError", "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
    (
        "torch.zeros(0,3).amax()",
        "RuntimeError",
        "amax(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the "
        "'dim' argument.",
    ),
    ("torch.zeros(0,3).amax(0)", "IndexError", "amax(): Expected reduction dim 0 to have non-zero size."),
    (
        "torch.zeros(0,3).argmax()",
        "IndexError",
        "argmax(): Expected reduction dim to be specified for input.numel() == 0.",
    ),
    ("torch.zeros(0,3).argmin(0)", "IndexError", "argmin(): Expected reduction dim 0 to have non-zero size."),
    (
        "torch.zeros(2,dtype=torch.complex64).amax()",
        "NotImplementedError",
        "\"max_values_cpu\" not implemented for 'ComplexFloat'",
    ),
    (
        "torch.zeros(2,dtype=torch.long).mean()",
        "RuntimeError",
        "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: Long",
    ),
    ("x.sum(5)", "IndexError", "Dimension out of range (expected to be in range of [-2, 1], but got 5)"),
    ("x.sum((0,0))", "RuntimeError", "dim 0 appears multiple times in the list of dims"),
    ("x.any(7)", "IndexError", "Dimension out of range (expected to be in range of [-2, 1], but got 7)"),
    ("torch.index_put(x,(I([5]),),I(1.))", "IndexError", "index 5 is out of bounds for dimension 0 with size 3"),
    (
        "torch.index_put(x,(I([0]),),I(1))",
        "RuntimeError",
        "Index put requires the source and destination dtypes match, got Float for the destination and Long for the "
        "source.",
    ),
    (
        "x[I([0,1]),I([0,1,2])]",
        "IndexError",
        "shape mismatch: indexing tensors could not be broadcast together with shapes [2], [3]",
    ),
    ("x[x>20,0,0]", "IndexError", "too many indices for tensor of dimension 2"),
    (
        "x[I([True])]",
        "IndexError",
        "The shape of the mask [1] at index 0 does not match the shape of the indexed tensor [3, 4] at index 0",
    ),
    ("x[5]", "IndexError", "index 5 is out of bounds for dimension 0 with size 3"),
    (
        "I(1.)[0]",
        "IndexError",
        "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a "
        "0-dim tensor to a number",
    ),
    (
        "x[1.5]",
        "IndexError",
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got float)",
    ),
    ("x[::0]", "ValueError", "slice step cannot be zero"),
    ("x[I([1.])]", "IndexError", "tensors used as indices must be long, int, byte or bool tensors"),
]


@pytest.mark.parametrize("code,kind,words", CASES, ids=[code for code, _, _ in CASES])
@pytest.mark.filterwarnings("ignore")
@pytest.mark.usefixtures("errors_at_once")
def test_error(code, kind, words, device):
    names = {
        "torch": torch,
        "I": functools.partial(torch.tensor, device=device),
        "x": torch.arange(12.0, device=device).reshape(3, 4),
    }
    with pytest.raises(getattr(builtins, kind)) as caught:
        eval(code, names)
    assert type(caught.value).__name__ == kind
    assert str(caught.value) == words
