"""How tensors and storages are sent to other processes: as the memory itself, which moves to where both can see it."""

from __future__ import annotations

import atexit
import contextlib
import os
import tempfile
import uuid
import weakref
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

import torchlite as torch
from torchlite._tensor.storage import mapping_of
from torchlite.nn import Parameter

_STRATEGIES = {"file_descriptor", "file_system"}
_strategy = "file_descriptor"
_sent: set[str] = set()  # names that were given out; those that nobody received go with the process


def set_sharing_strategy(new_strategy: str) -> None:
    """How memory is sent: "file_descriptor" (the default; nothing is left behind whatever happens) or "file_system" (a
    file in shared memory under a name, which takes no descriptor and is gone when its process is).
    """
    global _strategy
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy '{new_strategy}', expected one of {_STRATEGIES}")
    _strategy = new_strategy


def get_sharing_strategy() -> str:
    """What `set_sharing_strategy` set."""
    return _strategy


def get_all_sharing_strategies() -> set[str]:
    """The strategies there are."""
    return set(_STRATEGIES)


def _remove(names: set[str], pid: int) -> None:
    if os.getpid() == pid:  # a forked child does not own the files
        for name in names:
            with contextlib.suppress(OSError):  # it was received
                os.unlink(name)


def _named(storage: Any) -> str:
    """A name of the storage's memory for one receiver, who takes it away."""
    if storage.filename is None or not os.path.exists(storage.filename):
        folder = "/dev/shm" if os.access("/dev/shm", os.W_OK) else tempfile.gettempdir()
        name = os.path.join(folder, f"torchlite_{os.getpid()}_{uuid.uuid4().hex}")
        storage._move_to_file(name)
        weakref.finalize(mapping_of(storage._tensor._data), _remove, {name}, os.getpid())
    sent = f"{storage.filename}_{uuid.uuid4().hex}"
    os.link(storage.filename, sent)
    if not _sent:
        atexit.register(_remove, _sent, os.getpid())
    _sent.add(sent)
    return sent


def rebuild_storage_fd(descriptor: Any, size: int) -> Any:
    """The storage whose memory came as a descriptor."""
    storages: Any = torch.UntypedStorage
    return storages._new_shared_fd_cpu(descriptor.detach(), size)


def rebuild_storage_filename(name: str, size: int) -> Any:
    """The storage whose memory has a name."""
    if not os.path.exists(name):
        raise RuntimeError(f"unable to open shared memory object <{name}> in read-write mode: its process is gone")
    storage: Any = torch.UntypedStorage.from_file(name, True, size)
    weakref.finalize(mapping_of(storage._tensor._data), _remove, {name}, os.getpid())
    return storage


def reduce_storage(storage: Any) -> Any:
    """What a storage is pickled as for another process."""
    if storage.device.type != "cpu":
        return storage.__reduce_ex__(2)
    if storage.nbytes() and (_strategy == "file_system" or (storage.is_shared() and storage.filename is not None)):
        return rebuild_storage_filename, (_named(storage), storage.nbytes())
    memory = mapping_of(storage.share_memory_()._tensor._data)
    return rebuild_storage_fd, (DupFd(memory.descriptor), storage.nbytes())


def rebuild_meta_tensor(cls: type, dtype: Any, shape: Any, stride: Any, requires_grad: bool) -> Any:
    """A tensor without data."""
    tensor = torch.empty_strided(shape, stride, dtype=dtype, device="meta")
    return Parameter(tensor, requires_grad) if cls is Parameter else tensor.requires_grad_(requires_grad)


def rebuild_tensor(cls: type, storage: Any, metadata: Any) -> Any:
    """The tensor on a storage that came from another process."""
    dtype, offset, size, stride, requires_grad = metadata
    tensor = torch.empty(0, dtype=dtype, device="cpu").set_(storage, offset, size, stride)
    return Parameter(tensor, requires_grad) if cls is Parameter else tensor.requires_grad_(requires_grad)


def reduce_tensor(tensor: Any) -> Any:
    """What a tensor is pickled as for another process. RuntimeError for one with a history."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    if tensor.is_meta:
        about = tensor.dtype, tuple(tensor.shape), tensor.stride(), tensor.requires_grad
        return rebuild_meta_tensor, (type(tensor), *about)
    if not tensor.is_cpu:
        return tensor.__reduce_ex__(2)
    storage = tensor.untyped_storage()
    metadata = tensor.dtype, tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.requires_grad
    return rebuild_tensor, (type(tensor), storage, metadata)


def init_reductions() -> None:
    """Have processes send tensors, parameters and storages as shared memory."""
    for cls in (torch.Tensor, Parameter):
        ForkingPickler.register(cls, reduce_tensor)
    ForkingPickler.register(torch.UntypedStorage, reduce_storage)
