"""State dicts over several processes: not yet."""

from .._absent import absent, kind

_HERE = "torch.distributed.checkpoint.state_dict"

StateDictOptions = kind("StateDictOptions", _HERE)
get_model_state_dict = absent("get_model_state_dict", _HERE)
get_optimizer_state_dict = absent("get_optimizer_state_dict", _HERE)
get_state_dict = absent("get_state_dict", _HERE)
set_model_state_dict = absent("set_model_state_dict", _HERE)
set_optimizer_state_dict = absent("set_optimizer_state_dict", _HERE)
set_state_dict = absent("set_state_dict", _HERE)
