"""PyTorch's programmatic launcher names, unsupported.

torchlite starts worlds by `mpiexec` (`torchlite-run`), or a function in processes of one machine by
`torch.multiprocessing.spawn`.
"""

from .._unavailable_stubs import make_unavailable_class, make_unavailable_function

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]

LaunchConfig = make_unavailable_class("LaunchConfig", "torch.distributed.launcher.api")
elastic_launch = make_unavailable_class("elastic_launch", "torch.distributed.launcher.api")
launch_agent = make_unavailable_function("launch_agent", "torch.distributed.launcher.api")
