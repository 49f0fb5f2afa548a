"""torch.cuda.sparse.FloatTensor and the other legacy types."""

from ..sparse._legacy_tensor_types import NAMES, find_sparse_type

globals().update({name: find_sparse_type(name, "cuda") for name in NAMES})
