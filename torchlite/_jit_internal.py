"""The marks of functions for TorchScript, under the name of PyTorch's module."""

from typing import Final

from .futures import Future
from .jit._function_modifiers import BroadcastingList1 as BroadcastingList1
from .jit._function_modifiers import BroadcastingList2 as BroadcastingList2
from .jit._function_modifiers import BroadcastingList3 as BroadcastingList3
from .jit._function_modifiers import BroadcastingList4 as BroadcastingList4
from .jit._function_modifiers import BroadcastingList5 as BroadcastingList5
from .jit._function_modifiers import BroadcastingList6 as BroadcastingList6
from .jit._function_modifiers import BroadcastingListCls as BroadcastingListCls
from .jit._function_modifiers import FunctionModifiers as FunctionModifiers
from .jit._function_modifiers import _copy_to_script_wrapper as _copy_to_script_wrapper
from .jit._function_modifiers import _disable_emit_hooks as _disable_emit_hooks
from .jit._function_modifiers import _drop as _drop
from .jit._function_modifiers import _isinstance as _isinstance
from .jit._function_modifiers import _overload as _overload
from .jit._function_modifiers import _qualified_name as _qualified_name
from .jit._function_modifiers import boolean_dispatch as boolean_dispatch
from .jit._function_modifiers import copy_torchscript_modifier as copy_torchscript_modifier
from .jit._function_modifiers import export as export
from .jit._function_modifiers import get_torchscript_modifier as get_torchscript_modifier
from .jit._function_modifiers import ignore as ignore
from .jit._function_modifiers import is_dict as is_dict
from .jit._function_modifiers import is_final as is_final
from .jit._function_modifiers import is_future as is_future
from .jit._function_modifiers import is_ignored_fn as is_ignored_fn
from .jit._function_modifiers import is_list as is_list
from .jit._function_modifiers import is_optional as is_optional
from .jit._function_modifiers import is_scripting as is_scripting
from .jit._function_modifiers import is_tuple as is_tuple
from .jit._function_modifiers import is_union as is_union
from .jit._function_modifiers import should_drop as should_drop
from .jit._function_modifiers import unused as unused

__all__ = ["Final", "Future"]
