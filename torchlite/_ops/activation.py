"""Activation functions.

Each is one record: a composite of primitives (it runs on raw arrays, so it calls only ``F``), and a derivative that
saves as little as possible. If a single pass over memory is faster (gelu, silu, mish ...), the derivative is a separate
record, ``_<name>_backward``, that a backend may fuse; under ``create_graph`` its composite runs.
"""

import math
import warnings

from torchlite._dispatch import INPLACE, POINTWISE, RANDOM, Out, composite, memory_layout, op
from torchlite._types.dtypes import BOOL, COMPLEX, INT

from ._dtype_checks import refuse_kinds

SQRT_HALF = math.sqrt(0.5)
INV_SQRT_2PI = 1.0 / math.sqrt(2.0 * math.pi)
TANH_SCALE = math.sqrt(2.0 / math.pi)
TANH_CUBIC = 0.044715
SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


def require_float(F, input, kernel, complex_too=False):
    """PyTorch's error for a dtype that the op does not support; ``kernel`` is the name in its message."""
    refuse_kinds(F.dtype_of(input), kernel, BOOL, INT, *(() if complex_too else (COMPLEX,)))


# --- elu and its kin ------------------------------------------------------------------------------


def _elu_with_scales(F, input, alpha, scale, input_scale):
    require_float(F, input, "elu_cpu")
    negative = F.mul(F.expm1(F.mul(input, input_scale)), alpha * scale)
    return F.where(F.gt(input, 0), F.mul(input, scale), negative)


def _elu_backward(F, grad, input, alpha, scale, input_scale):
    # Of zeros where the input is not negative: its own derivative there is 0 and never 0 * inf.
    negative = F.where(F.lt(input, 0), input, F._zeros_like(input))
    slope = F.mul(F.exp(F.mul(negative, input_scale)), alpha * scale * input_scale)
    return F.where(F.gt(input, 0), F.mul(grad, scale), F.mul(grad, slope))


op(
    "_elu(Tensor input, alpha, scale, input_scale)",
    where="",
    composite=_elu_with_scales,
    tags=POINTWISE,
    vjp={"input": lambda F, g, input, alpha, scale, input_scale: F._elu_backward(g, input, alpha, scale, input_scale)},
)
op(
    "_elu_backward(Tensor grad, Tensor input, alpha, scale, input_scale)",
    where="",
    composite=_elu_backward,
    tags=POINTWISE,
)

op(
    "elu(Tensor input, alpha=1.0)",
    where="nn.functional",
    composite=lambda F, input, alpha: F._elu(input, alpha, 1.0, 1.0),
    tags=POINTWISE | INPLACE,
    vjp={"input": lambda F, g, input, alpha: F._elu_backward(g, input, alpha, 1.0, 1.0)},
    doc="""`input` where it is positive, and ``alpha * (exp(input) - 1)`` elsewhere (Clevert et al., 2015).

    Args:
        alpha: The negative of the limit at minus infinity. Default: 1.0.

    Raises:
        NotImplementedError: `input` is not floating point.

    Example:
        >>> torch.nn.functional.elu(torch.tensor([-1.0, 2.0]))
        tensor([-0.6321,  2.0000])

    See also:
        `torch.nn.ELU`.
    """,
    layout=memory_layout.pointwise,
)
op(
    "selu(Tensor input)",
    where="torch nn.functional",
    composite=lambda F, input: F._elu(input, SELU_ALPHA, SELU_SCALE, 1.0),
    tags=POINTWISE | INPLACE,
    vjp={"input": lambda F, g, input: F._elu_backward(g, input, SELU_ALPHA, SELU_SCALE, 1.0)},
    doc="""The scaled ELU: ``scale * (max(0, input) + min(0, alpha * (exp(input) - 1)))``.

    `alpha` is 1.6732632 and `scale` 1.0507010, so that activations keep mean 0 and variance 1 from layer to layer
    (Klambauer et al., 2017).

    Raises:
        NotImplementedError: `input` is not floating point.

    Example:
        >>> torch.selu(torch.tensor([-1.0, 2.0]))
        tensor([-1.1113,  2.1014])

    See also:
        `torch.nn.SELU`.
    """,
    layout=memory_layout.pointwise,
    node_name="EluBackward0",
)


def _celu(F, input, alpha):
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return F._elu(input, alpha, 1.0, 1.0 / alpha)


op(
    "celu(Tensor input, alpha=1.0)",
    where="torch nn.functional",
    composite=_celu,
    tags=POINTWISE | INPLACE,
    vjp={"input": lambda F, g, input, alpha: F._elu_backward(g, input, alpha, 1.0, 1.0 / alpha)},
    doc="""``max(0, input) + min(0, alpha * (exp(input / alpha) - 1))`` (Barron, 2017).

    Args:
        alpha: The negative of the limit at minus infinity; not 0. Default: 1.0.

    Raises:
        RuntimeError: `alpha` is 0.
        NotImplementedError: `input` is not floating point.

    Example:
        >>> torch.celu(torch.tensor([-1.0, 2.0]), 0.5)
        tensor([-0.4323,  2.0000])

    See also:
        `torch.nn.CELU`.
    """,
    layout=memory_layout.pointwise,
)


# --- smooth ones ----------------------------------------------------------------------------------


def _gelu(F, input, approximate="none"):
    require_float(F, input, "GeluKernelImpl")
    if approximate == "tanh":
        cubic = F.mul(F.mul(F.mul(input, input), input), TANH_CUBIC)
        bounded = F.tanh(F.mul(F.add(input, cubic), TANH_SCALE))
    elif approximate == "none":
        bounded = F.erf(F.mul(input, SQRT_HALF))
    else:
        raise RuntimeError("approximate argument must be either none or tanh.")
    return F.mul(F.mul(input, 0.5), F.add(bounded, 1.0))


def _gelu_backward(F, grad, input, approximate="none"):
    square = F.mul(input, input)
    if approximate == "tanh":
        bounded = F.tanh(F.mul(F.add(input, F.mul(F.mul(square, input), TANH_CUBIC)), TANH_SCALE))
        inner = F.mul(F.add(F.mul(square, 3.0 * TANH_CUBIC), 1.0), TANH_SCALE)
        bell = F.mul(F.sub(F._ones_like(bounded), F.mul(bounded, bounded)), F.mul(inner, 0.5))
    else:
        bounded = F.erf(F.mul(input, SQRT_HALF))
        bell = F.mul(F.exp(F.mul(square, -0.5)), INV_SQRT_2PI)
    slope = F.add(F.mul(F.add(bounded, 1.0), 0.5), F.mul(input, bell))
    return F.mul(grad, slope)


op("_gelu_backward(Tensor grad, Tensor input, approximate='none')", where="", composite=_gelu_backward, tags=POINTWISE)
op(
    "gelu(Tensor input, *, approximate='none')",
    where="nn.functional",
    composite=_gelu,
    tags=POINTWISE,
    vjp={"input": lambda F, g, input, approximate: F._gelu_backward(g, input, approximate)},
    doc="""`input` times the standard normal distribution function of `input` (Hendrycks and Gimpel, 2016).

    Args:
        approximate: `"none"` for ``x * (1 + erf(x / sqrt(2))) / 2``, or `"tanh"` for
            ``x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2``. Default: `"none"`.

    Raises:
        RuntimeError: `approximate` is another value.
        NotImplementedError: `input` is not floating point.

    Example:
        >>> torch.nn.functional.gelu(torch.tensor([-1.0, 2.0]))
        tensor([-0.1587,  1.9545])

    See also:
        `torch.nn.GELU`.
    """,
    layout=memory_layout.pointwise,
    out=Out(supported=True),
)


def _silu(F, input):
    require_float(F, input, "silu_cpu", True)
    return F.mul(input, F.sigmoid(input))


def _silu_backward(F, grad, input):
    gate = F.sigmoid(input)
    slope = F.mul(gate, F.add(F.mul(input, F.sub(F._ones_like(gate), gate)), 1.0))
    return F.mul(grad, F.conj(slope))


op("_silu_backward(Tensor grad, Tensor input)", where="", composite=_silu_backward, tags=POINTWISE)
op(
    "silu(Tensor input)",
    where="nn.functional",
    composite=_silu,
    tags=POINTWISE | INPLACE,
    vjp={"input": lambda F, g, input: F._silu_backward(g, input)},
    doc="""``input * sigmoid(input)``, also called swish.

    Raises:
        NotImplementedError: `input` is an integer or bool tensor.

    Example:
        >>> torch.nn.functional.silu(torch.tensor([-1.0, 2.0]))
        tensor([-0.2689,  1.7616])

    See also:
        `torch.nn.SiLU`.
    """,
    layout=memory_layout.pointwise,
)


def _mish(F, input):
    require_float(F, input, "mish_cpu")
    return F.mul(input, F.tanh(F.softplus(input)))


def _mish_backward(F, grad, input):
    bounded = F.tanh(F.softplus(input))
    bell = F.mul(F.sub(F._ones_like(bounded), F.mul(bounded, bounded)), F.sigmoid(input))
    return F.mul(grad, F.add(bounded, F.mul(input, bell)))


op("_mish_backward(Tensor grad, Tensor input)", where="", composite=_mish_backward, tags=POINTWISE)
op(
    "mish(Tensor input)",
    where="nn.functional",
    composite=_mish,
    tags=POINTWISE | INPLACE,
    vjp={"input": lambda F, g, input: F._mish_backward(g, input)},
    doc="""``input * tanh(softplus(input))`` (Misra, 2019).

    Raises:
        NotImplementedError: `input` is not floating point.

    Example:
        >>> torch.nn.functional.mish(torch.tensor([-1.0, 2.0]))
        tensor([-0.3034,  1.9440])

    See also:
        `torch.nn.Mish`.
    """,
    layout=memory_layout.pointwise,
)


def _softplus(F, input, beta=1.0, threshold=20.0):
    require_float(F, input, "softplus_cpu")
    scaled = F.mul(input, beta)
    curved = F.div(F.add(F.relu(scaled), F.log1p(F.exp(F.neg(F.abs(scaled))))), beta)
    return F.where(F.gt(scaled, threshold), input, curved)


def _softplus_backward(F, grad, input, beta, threshold):
    scaled = F.mul(input, beta)
    return F.where(F.gt(scaled, threshold), grad, F.mul(grad, F.sigmoid(scaled)))


op(
    "_softplus_backward(Tensor grad, Tensor input, beta, threshold)",
    where="",
    composite=_softplus_backward,
    tags=POINTWISE,
)
op(
    "softplus(Tensor input, beta=1.0, threshold=20.0)",
    where="nn.functional",
    composite=_softplus,
    tags=POINTWISE,
    vjp={"input": lambda F, g, input, beta, threshold: F._softplus_backward(g, input, beta, threshold)},
    doc="""``log(1 + exp(beta * input)) / beta``: a smooth ReLU.

    Args:
        beta: The sharpness. Default: 1.0.
        threshold: Where ``beta * input`` is above it, the result is `input` itself. Default: 20.0.

    Raises:
        NotImplementedError: `input` is not floating point.

    Example:
        >>> torch.nn.functional.softplus(torch.tensor([-1.0, 2.0]))
        tensor([0.3133, 2.1269])

    See also:
        `torch.nn.Softplus`.
    """,
    layout=memory_layout.pointwise,
    out=Out(supported=True),
)


def _logsigmoid(F, input):
    require_float(F, input, "log_sigmoid_cpu", True)
    negative_part = F.where(F.lt(input, 0), input, F._zeros_like(input))
    return F.sub(negative_part, F.log1p(F.exp(F.neg(F.abs(input)))))


op(
    "logsigmoid(Tensor input)",
    where="nn.functional",
    composite=_logsigmoid,
    tags=POINTWISE,
    vjp={"input": lambda F, g, input: F.mul(g, F.sigmoid(F.neg(input)))},
    doc="""``log(1 / (1 + exp(-input)))``, computed without overflow.

    Raises:
        NotImplementedError: `input` is an integer or bool tensor.

    Example:
        >>> torch.nn.functional.logsigmoid(torch.tensor([-100.0, 0.0]))
        tensor([-100.0000,   -0.6931])

    See also:
        `torch.nn.LogSigmoid`.
    """,
    layout=memory_layout.pointwise,
    out=Out(supported=True),
    node_name="LogSigmoidBackward0",
)


@composite("tanhshrink(Tensor input)", where="nn.functional")
def tanhshrink(F, input):
    """``input - tanh(input)``, elementwise.

    Example:
        >>> torch.nn.functional.tanhshrink(torch.tensor([-1.0, 2.0]))
        tensor([-0.2384,  1.0360])

    See also:
        `torch.nn.Tanhshrink`.
    """
    return input - F.tanh(input)


@composite("softsign(Tensor input)", where="nn.functional")
def softsign(F, input):
    """``input / (1 + abs(input))``, elementwise.

    Example:
        >>> torch.nn.functional.softsign(torch.tensor([-1.0, 3.0]))
        tensor([-0.5000,  0.7500])

    See also:
        `torch.nn.Softsign`.
    """
    return input / (F.abs(input) + 1)


@composite("glu(Tensor input, dim=-1)", where="nn.functional", node_name="GluBackward0(input)")
def glu(F, input, dim):
    """The gated linear unit: the first half of `input` along `dim` times the sigmoid of the second (Dauphin et
    al., 2016).

    Args:
        dim: The dimension that is halved. Default: -1, the last.

    Returns:
        A tensor of half the size along `dim`.

    Raises:
        RuntimeError: The size along `dim` is odd, or `input` has no dimensions.
        IndexError: `dim` is out of range.

    Example:
        >>> torch.nn.functional.glu(torch.tensor([1.0, 2.0, 0.0, 0.0]))
        tensor([0.5000, 1.0000])

    See also:
        `torch.nn.GLU`.
    """
    if input.ndim == 0:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    if not -input.ndim <= dim < input.ndim:
        raise IndexError(
            f"Dimension out of range (expected to be in range of [{-input.ndim}, {input.ndim - 1}], but got {dim})"
        )
    size = input.shape[dim]
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim % input.ndim} is size {size}")
    require_float(F, input, "glu_cpu")
    half = size // 2
    return F.narrow(input, dim, 0, half) * F.sigmoid(F.narrow(input, dim, half, half))


@composite("gumbel_softmax(Tensor logits, tau=1, hard=False, eps=1e-10, dim=-1)", where="nn.functional", tags=RANDOM)
def gumbel_softmax(F, logits, tau, hard, eps, dim, generator=None):
    """A sample from the Gumbel-softmax distribution along `dim` (Jang et al., 2016):
    ``softmax((logits + g) / tau)`` with Gumbel noise `g`.

    Args:
        logits: The unnormalised log probabilities.
        tau: The temperature, positive; the sample is nearly one-hot for a small one. Default: 1.
        hard: Whether the result is one-hot, with the gradient of the soft sample. Default: False.
        eps: Deprecated: it has no effect.
        dim: The dimension of the categories. Default: -1.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.nn.functional.gumbel_softmax(torch.zeros(2, 3), hard=True).sum(-1)
        tensor([1., 1.])
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=3)
    noise = F._zeros_like(logits)
    noise.exponential_(generator=generator)
    soft = F.softmax((logits - F.log(noise)) / tau, dim)
    if not hard:
        return soft
    index = F.argmax(soft.detach(), dim, True)
    one_hot = F.scatter(F._zeros_like(soft).detach(), dim, index, 1.0)
    return one_hot - soft.detach() + soft
