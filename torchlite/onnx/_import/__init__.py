"""ONNX ops as functions over tensors, called by the nodes of loaded models.

A function takes the op's inputs in order, None for omitted ones, and attributes as keywords. A parameter that changed
from attribute to input has one name. `outputs` is the node's number of outputs: a function with that parameter returns
a tuple if there are several. Numeric inputs are annotated `Ints`, `Floats` or `Number` and are Python values if
constant.
"""

from __future__ import annotations

import functools
import importlib

from . import op_registry
from .op_registry import Op

# The modules that register ops, and the names of the ops: a model's file needs few of them.
FAMILIES = {
    "ai_onnx_ml": """
        ArrayFeatureExtractor Binarizer CategoryMapper DictVectorizer FeatureVectorizer Imputer LabelEncoder
        LinearClassifier LinearRegressor Normalizer OneHotEncoder Scaler TreeEnsemble TreeEnsembleClassifier
        TreeEnsembleRegressor ZipMap
    """,
    "attention": "Attention CausalConvWithState FlexAttention LinearAttention RotaryEmbedding",
    "casts": "BitCast Cast CastLike ConstantOfShape EyeLike Identity",
    "conv_pool": """
        AveragePool Conv ConvTranspose DeformConv GlobalAveragePool GlobalLpPool GlobalMaxPool LpPool MaxPool MaxRoiPool
        MaxUnpool
    """,
    "elementwise": """
        Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Ceil Celu Clip
        Cos Cosh Div Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual HardSigmoid HardSwish IsInf IsNaN LeakyRelu
        Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or PRelu Pow Range Reciprocal Relu Round Selu Shrink
        Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum SwiGLU Swish Tan Tanh ThresholdedRelu Where Xor
    """,
    "indexing": """
        ArgMax ArgMin Compress Gather GatherElements GatherND NonZero OneHot Scatter ScatterElements ScatterND
        TensorScatter TopK Unique
    """,
    "losses": "NegativeLogLikelihoodLoss SoftmaxCrossEntropyLoss",
    "matmul": "Det Einsum Gemm MatMul",
    "normalization": """
        BatchNormalization Dropout GroupNormalization Hardmax InstanceNormalization LRN LayerNormalization LogSoftmax
        LpNormalization MeanVarianceNormalization RMSNormalization SimplifiedLayerNormalization Softmax
    """,
    "optimizers": "Adagrad Adam Momentum",
    "quantization": """
        ConvInteger DequantizeLinear DynamicQuantizeLinear MatMulInteger QLinearConv QLinearMatMul QuantizeLinear
    """,
    "random": "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    "recurrent": "GRU LSTM RNN",
    "reductions": """
        CumProd CumSum ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd
        ReduceSum ReduceSumSquare
    """,
    "resize": "Resize Upsample",
    "sequences": """
        ConcatFromSequence Optional OptionalGetElement OptionalHasElement SequenceAt SequenceConstruct SequenceEmpty
        SequenceErase SequenceInsert SequenceLength SplitToSequence
    """,
    "shape_ops": """
        CenterCropPad Col2Im Concat DepthToSpace Expand Flatten Pad Reshape ReverseSequence Shape Size Slice
        SpaceToDepth Split Squeeze Tile Transpose Trilu Unsqueeze
    """,
    "signals": "BlackmanWindow DFT HammingWindow HannWindow MelWeightMatrix STFT",
    "strings": "RegexFullMatch StringConcat StringNormalizer StringSplit TfIdfVectorizer",
    "vision": "AffineGrid GridSample ImageDecoder NonMaxSuppression RoiAlign",
}
# The modules of domains, for the names that ONNX's own domain has too.
DOMAINS = {"com.microsoft": ("com_microsoft", "microsoft_quantized", "microsoft_packed_weights")}
_FAMILY_OF = {name: family for family, names in FAMILIES.items() for name in names.split()}


def register_all() -> None:
    """Import all op families, which register their functions."""
    for family in (*FAMILIES, *[name for names in DOMAINS.values() for name in names]):
        importlib.import_module(f"{__name__}.{family}")


@functools.cache
def _register_family_of(domain: str, name: str) -> None:
    families = DOMAINS.get(domain) or ((_FAMILY_OF[name],) if name in _FAMILY_OF else ())
    for family in families:
        importlib.import_module(f"{__name__}.{family}")


def find_op(domain: str, name: str, version: int) -> Op | None:
    """Return the implementation of an op version in its domain, None if there is none."""
    _register_family_of(domain, name)
    return op_registry.find_op(domain, name, version)


def op_versions(domain: str, name: str) -> list[int]:
    """Return the versions with implementations of an op."""
    _register_family_of(domain, name)
    return op_registry.op_versions(domain, name)
