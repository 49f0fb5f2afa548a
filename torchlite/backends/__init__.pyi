"""Switches and questions about the libraries under the devices."""

from . import cpu as cpu
from . import cuda as cuda
from . import cudnn as cudnn
from . import mkl as mkl
from . import mkldnn as mkldnn
from . import mps as mps
from . import openmp as openmp
from . import opt_einsum as opt_einsum
from . import quantized as quantized
from ._flag_properties import disable_global_flags as disable_global_flags
from ._flag_properties import flags_frozen as flags_frozen

fp32_precision: str
