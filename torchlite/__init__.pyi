# Made by tools/make_stubs.py from the op records: do not edit.
"""PyTorch's API over array runtimes that already exist."""

from math import e as e
from math import inf as inf
from math import nan as nan
from math import pi as pi

from . import _C as _C
from . import _VF as _VF
from . import __config__ as __config__
from . import __future__ as __future__
from . import _compile as _compile
from . import _custom_ops as _custom_ops
from . import _dynamo as _dynamo
from . import _functorch as _functorch
from . import _guards as _guards
from . import _higher_order_ops as _higher_order_ops
from . import _inductor as _inductor
from . import _jit_internal as _jit_internal
from . import _logging as _logging
from . import _prims_common as _prims_common
from . import _subclasses as _subclasses
from . import _tensor_str as _tensor_str
from . import _utils as _utils
from . import _vmap_internals as _vmap_internals
from . import accelerator as accelerator
from . import amp as amp
from . import ao as ao
from . import autograd as autograd
from . import backends as backends
from . import compiler as compiler
from . import cpu as cpu
from . import cuda as cuda
from . import distributed as distributed
from . import distributions as distributions
from . import export as export
from . import fft as fft
from . import func as func
from . import functional as functional
from . import futures as futures
from . import fx as fx
from . import hub as hub
from . import jit as jit
from . import library as library
from . import linalg as linalg
from . import masked as masked
from . import mps as mps
from . import mtia as mtia
from . import multiprocessing as multiprocessing
from . import nested as nested
from . import nn as nn
from . import onnx as onnx
from . import opencl as opencl
from . import optim as optim
from . import overrides as overrides
from . import package as package
from . import profiler as profiler
from . import quantization as quantization
from . import quasirandom as quasirandom
from . import random as random
from . import return_types as return_types
from . import serialization as serialization
from . import signal as signal
from . import sparse as sparse
from . import special as special
from . import storage as storage
from . import testing as testing
from . import torch_version as torch_version
from . import types as types
from . import utils as utils
from . import version as version
from . import xpu as xpu
from ._compile import _disable_dynamo as _disable_dynamo
from ._dynamo.eval_frame import compile as compile
from ._serialization.pytorch_file import PyTorchFileReader as PyTorchFileReader
from ._serialization.pytorch_file import PyTorchFileWriter as PyTorchFileWriter
from ._stubs.arrangement import *
from ._stubs.arrangement import _chunk_cat as _chunk_cat
from ._stubs.arrangement import _lazy_clone as _lazy_clone
from ._stubs.basic import *
from ._stubs.basic import dtype as dtype
from ._stubs.elementwise import *
from ._stubs.elementwise import _add_relu as _add_relu
from ._stubs.elementwise import _amp_foreach_non_finite_check_and_unscale_ as _amp_foreach_non_finite_check_and_unscale_
from ._stubs.elementwise import _amp_update_scale_ as _amp_update_scale_
from ._stubs.elementwise import _choose_qparams_per_tensor as _choose_qparams_per_tensor
from ._stubs.elementwise import _conj as _conj
from ._stubs.elementwise import _conj_physical as _conj_physical
from ._stubs.elementwise import (
    _fake_quantize_learnable_per_channel_affine as _fake_quantize_learnable_per_channel_affine,
)
from ._stubs.elementwise import _fake_quantize_learnable_per_tensor_affine as _fake_quantize_learnable_per_tensor_affine
from ._stubs.elementwise import (
    _fake_quantize_per_tensor_affine_cachemask_tensor_qparams as _fake_quantize_per_tensor_affine_cachemask_tensor_qparams,
)
from ._stubs.elementwise import _neg_view as _neg_view
from ._stubs.functions import *
from ._stubs.layers import *
from ._stubs.layers import _embedding_bag as _embedding_bag
from ._stubs.layers import _embedding_bag_forward_only as _embedding_bag_forward_only
from ._stubs.layers import _grid_sampler_2d_cpu_fallback as _grid_sampler_2d_cpu_fallback
from ._stubs.layers import _native_multi_head_attention as _native_multi_head_attention
from ._stubs.layers import _transform_bias_rescale_qkv as _transform_bias_rescale_qkv
from ._stubs.linear import *
from ._stubs.linear import _addmm_activation as _addmm_activation
from ._stubs.linear import _compute_linear_combination as _compute_linear_combination
from ._stubs.linear import _convert_weight_to_int4pack as _convert_weight_to_int4pack
from ._stubs.linear import _convert_weight_to_int4pack_for_cpu as _convert_weight_to_int4pack_for_cpu
from ._stubs.linear import _dyn_quant_matmul_4bit as _dyn_quant_matmul_4bit
from ._stubs.linear import _dyn_quant_pack_4bit_weight as _dyn_quant_pack_4bit_weight
from ._stubs.linear import _grouped_mm as _grouped_mm
from ._stubs.linear import _int_mm as _int_mm
from ._stubs.linear import _scaled_mm as _scaled_mm
from ._stubs.linear import _scaled_mm_v2 as _scaled_mm_v2
from ._stubs.linear import _weight_int4pack_mm as _weight_int4pack_mm
from ._stubs.linear import _weight_int4pack_mm_for_cpu as _weight_int4pack_mm_for_cpu
from ._stubs.linear import _weight_int8pack_mm as _weight_int8pack_mm
from ._stubs.making import *
from ._stubs.making import _dirichlet_grad as _dirichlet_grad
from ._stubs.making import _sample_dirichlet as _sample_dirichlet
from ._stubs.making import _standard_gamma as _standard_gamma
from ._stubs.making import _standard_gamma_grad as _standard_gamma_grad
from ._stubs.reductions import *
from ._stubs.reductions import _masked_softmax as _masked_softmax
from ._stubs.reductions import _segment_reduce as _segment_reduce
from ._stubs.reductions import _unique as _unique
from ._stubs.reductions import _unique2 as _unique2
from ._stubs.tensor import *
from .amp import GradScaler as GradScaler
from .futures import Future as Future
from .jit import CompilationUnit as CompilationUnit
from .jit import ScriptFunction as ScriptFunction
from .jit import ScriptModule as ScriptModule
from .jit._runtime import ScriptObject as ScriptObject
from .jit._types import AnyType as AnyType
from .jit._types import BoolType as BoolType
from .jit._types import ComplexType as ComplexType
from .jit._types import DeviceObjType as DeviceObjType
from .jit._types import DictType as DictType
from .jit._types import FloatType as FloatType
from .jit._types import FutureType as FutureType
from .jit._types import IntType as IntType
from .jit._types import ListType as ListType
from .jit._types import NoneType as NoneType
from .jit._types import NumberType as NumberType
from .jit._types import OptionalType as OptionalType
from .jit._types import PyObjectType as PyObjectType
from .jit._types import StreamObjType as StreamObjType
from .jit._types import StringType as StringType
from .jit._types import SymBoolType as SymBoolType
from .jit._types import SymIntType as SymIntType
from .jit._types import TensorType as TensorType
from .jit._types import TupleType as TupleType
from .jit._types import Type as Type
from .jit._types import UnionType as UnionType

__version__: str
__torchlite_version__: str
newaxis: None
bool: dtype
uint8: dtype
byte: dtype
int8: dtype
char: dtype
int16: dtype
short: dtype
int32: dtype
int: dtype
int64: dtype
long: dtype
uint16: dtype
uint32: dtype
uint64: dtype
float16: dtype
half: dtype
bfloat16: dtype
float32: dtype
float: dtype
float64: dtype
double: dtype
float8_e4m3fn: dtype
float8_e5m2: dtype
float8_e4m3fnuz: dtype
float8_e5m2fnuz: dtype
complex32: dtype
chalf: dtype
complex64: dtype
cfloat: dtype
complex128: dtype
cdouble: dtype
float8_e8m0fnu: dtype
float4_e2m1fn_x2: dtype
uint1: dtype
uint2: dtype
uint3: dtype
uint4: dtype
uint5: dtype
uint6: dtype
uint7: dtype
int1: dtype
int2: dtype
int3: dtype
int4: dtype
int5: dtype
int6: dtype
int7: dtype
bits8: dtype
bits1x8: dtype
bits2x4: dtype
bits4x2: dtype
bits16: dtype
qint8: dtype
quint8: dtype
qint32: dtype
quint4x2: dtype
quint2x4: dtype
