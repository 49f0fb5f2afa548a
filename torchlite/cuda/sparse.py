"""torch.cuda.sparse.FloatTensor and the other legacy types."""

from ..sparse._legacy_tensor_types import NAMES, sparse_type

globals().update({name: sparse_type(name, "cuda") for name in NAMES})
