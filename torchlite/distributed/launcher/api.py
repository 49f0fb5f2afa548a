"""Starting processes from a program: PyTorch's names. torchlite starts worlds by `mpiexec` (`torchlite-run`), or a
function in processes of one machine by `torch.multiprocessing.spawn`.
"""

from .._absent import absent, kind

__all__ = ["LaunchConfig", "elastic_launch", "launch_agent"]

LaunchConfig = kind("LaunchConfig", "torch.distributed.launcher.api")
elastic_launch = kind("elastic_launch", "torch.distributed.launcher.api")
launch_agent = absent("launch_agent", "torch.distributed.launcher.api")
