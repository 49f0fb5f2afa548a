"""Record the names of PyTorch's public namespaces for tests/public_names/test_dir.py, which then needs no PyTorch.

usage: python tools/record_public_names.py     (needs the extra `oracle`; rewrites tests/public_names/pytorch_names.txt)

A line is a namespace and its names: `linalg: LinAlgError cholesky ...`, `torch` being the first.
"""

from __future__ import annotations

import importlib
import pathlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
SPACES = """
    accelerator amp amp.autocast_mode amp.grad_scaler ao.quantization autograd autograd.anomaly_mode autograd.forward_ad
    autograd.function autograd.functional autograd.grad_mode autograd.gradcheck autograd.graph autograd.profiler
    backends backends.cpu backends.cuda backends.cudnn backends.mkldnn backends.mps backends.opt_einsum compiler
    compiler.config cpu cuda cuda.amp cuda.nvtx distributed distributed.algorithms.ddp_comm_hooks
    distributed.algorithms.join distributed.autograd distributed.checkpoint distributed.device_mesh distributed.elastic
    distributed.elastic.multiprocessing.errors distributed.fsdp distributed.fsdp.wrap distributed.nn
    distributed.nn.functional distributed.optim distributed.pipelining distributed.rpc distributed.tensor
    distributed.tensor.parallel distributions distributions.constraint_registry distributions.constraints
    distributions.kl distributions.transforms distributions.utils export export.dynamic_shapes export.graph_signature
    export.passes export.unflatten fft func functional futures fx fx.experimental.proxy_tensor fx.graph fx.graph_module
    fx.interpreter fx.node fx.passes fx.proxy fx.subgraph_rewriter fx.traceback hub jit library linalg masked mps mtia
    multiprocessing nn nn.attention nn.attention.bias nn.attention.flex_attention nn.functional nn.grad nn.init
    nn.modules nn.parallel nn.parameter nn.utils nn.utils.clip_grad nn.utils.fusion nn.utils.parametrizations
    nn.utils.parametrize nn.utils.prune nn.utils.rnn nn.utils.stateless onnx onnx.errors onnx.ops onnx.symbolic_helper
    onnx.utils optim optim.lr_scheduler optim.swa_utils overrides profiler profiler.itt quantization quasirandom random
    return_types serialization signal signal.windows sparse special storage testing torch_version types utils
    utils.benchmark utils.checkpoint utils.collect_env utils.cpp_extension utils.data utils.data.dataloader
    utils.data.datapipes utils.data.dataset utils.data.distributed utils.data.sampler utils.deterministic utils.dlpack
    utils.flop_counter utils.hooks utils.model_zoo utils.module_tracker utils.weak version xpu
""".split()


def main() -> None:
    import torch

    lines = []
    for name in ("", *SPACES):
        module = importlib.import_module(f"torch.{name}") if name else torch
        lines.append(f"{name or 'torch'}: {' '.join(n for n in dir(module) if not n.startswith('__'))}\n")
    (ROOT / "tests" / "public_names" / "pytorch_names.txt").write_text("".join(lines))


if __name__ == "__main__":
    main()
