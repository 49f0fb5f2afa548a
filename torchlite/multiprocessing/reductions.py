"""Pickling of tensors and storages for other processes: the memory moves to shared memory and is not copied again.

The identity of the mapped file identifies memory in all processes. Memory that returns, or arrives twice, becomes the
existing storage.
"""

from __future__ import annotations

import os
import threading
import weakref
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

import torchlite as torch
from torchlite import Parameter
from torchlite._settings import fork_locks
from torchlite._settings.temporary_folders import use_for_multiprocessing
from torchlite._tensor.shared_memory import SharingStrategy, map_descriptor, map_file, mapping_of, new_name, unlink
from torchlite._tensor.storage import owner_of, storage_owning
from torchlite.utils.hooks import warn_if_has_hooks

_STRATEGIES = {"file_descriptor", "file_system"}
_shared_storages: weakref.WeakValueDictionary[tuple[int, int], Any] = (
    weakref.WeakValueDictionary()
)  # arrays by their memory
_lock = fork_locks.acquire_before_fork(threading.RLock())


def set_sharing_strategy(new_strategy: str) -> None:
    """Sets how the memory of CPU tensors is passed to other processes.

    With ``"file_descriptor"``, the strategy at the start, nothing is left behind. ``"file_system"`` names a file in
    shared
    memory, which takes no descriptor and is removed when its process ends. If a quarter of a process's descriptors are
    in
    use, both name files.

    Args:
        new_strategy: The strategy.

    Raises:
        AssertionError: There is no such strategy.

    Example:
        >>> before = torch.multiprocessing.get_sharing_strategy()
        >>> torch.multiprocessing.set_sharing_strategy("file_system")
        >>> torch.multiprocessing.get_sharing_strategy()
        'file_system'
        >>> torch.multiprocessing.set_sharing_strategy(before)
    """
    if new_strategy not in _STRATEGIES:
        raise AssertionError(f"invalid sharing strategy {new_strategy!r}, expected one of {_STRATEGIES}")
    SharingStrategy.strategy = new_strategy


def get_sharing_strategy() -> str:
    """Returns the strategy that `set_sharing_strategy` set.

    Example:
        >>> torch.multiprocessing.get_sharing_strategy() in torch.multiprocessing.get_all_sharing_strategies()
        True
    """
    return SharingStrategy.strategy


def get_all_sharing_strategies() -> set[str]:
    """Returns the sharing strategies, a set.

    Example:
        >>> sorted(torch.multiprocessing.get_all_sharing_strategies())
        ['file_descriptor', 'file_system']
    """
    return set(_STRATEGIES)


def _register_storage(memory: Any) -> Any:
    """The storage on shared memory, which is known from now on."""
    _shared_storages[mapping_of(memory).identity] = memory
    return storage_owning(memory)


def _find_known_memory(descriptor: int) -> Any:
    """Return the array on the memory behind a descriptor, or None if this process has none."""
    about = os.fstat(descriptor)
    return _shared_storages.get((about.st_dev, about.st_ino))


def rebuild_storage_empty() -> Any:
    """A storage without bytes, which no process shares."""
    return torch.UntypedStorage(0)


def rebuild_storage_fd(descriptor: Any, size: int) -> Any:
    """Rebuild a storage from a descriptor of its memory."""
    with _lock:
        own = descriptor.detach()
        memory = _find_known_memory(own)
        if memory is None:
            return _register_storage(map_descriptor(own, size))
        os.close(own)
        return _register_storage(memory)


def rebuild_storage_filename(name: str, size: int, once: bool) -> Any:
    """Rebuild a storage from the name of its memory. `once`: the name is for this receiver, which unlinks it."""
    with _lock:
        try:
            descriptor = os.open(name, os.O_RDWR)
        except OSError as error:
            raise RuntimeError(
                f"unable to open shared memory object <{name}> in read-write mode: {error.strerror} ({error.errno}): "
                "the process that sent it is gone"
            ) from None
        memory = _find_known_memory(descriptor)
        os.close(descriptor)
        if memory is None:
            if once:
                own = new_name()
                os.rename(name, own)
                return _register_storage(map_file(own, True, size, own=True))
            return _register_storage(map_file(name, True, size))
        if once:
            unlink(name)
        return _register_storage(memory)


def reduce_storage(storage: Any) -> Any:
    """Reduce a storage for pickling to another process. RuntimeError for one on CUDA or meta."""
    if storage.is_cuda or storage.device.type == "meta":
        kind = "CUDA" if storage.is_cuda else "meta"
        raise RuntimeError(f"Cannot pickle {kind} storage; try pickling a {kind} tensor instead")
    if storage.device.type != "cpu":
        return storage.__reduce_ex__(2)
    if not storage.nbytes():
        return rebuild_storage_empty, ()
    with _lock:
        memory = owner_of(storage.share_memory_()._tensor._tl_array)
        mapping = mapping_of(memory)
        if mapping.identity is not None:
            _shared_storages[mapping.identity] = memory
        if mapping.filename is None:
            if get_spawning_popen() is None:  # the receiver fetches it through a socket
                use_for_multiprocessing()
            return rebuild_storage_fd, (DupFd(mapping.descriptor), storage.nbytes())
        if not mapping.own:
            return rebuild_storage_filename, (mapping.filename, storage.nbytes(), False)
        sent = new_name()
        os.link(mapping.filename, sent)
        return rebuild_storage_filename, (sent, storage.nbytes(), True)


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
    """Reduce a tensor for pickling to another process. RuntimeError for a non-leaf tensor that requires grad."""
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    warn_if_has_hooks(tensor)
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
