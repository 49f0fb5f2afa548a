"""What `torch.cuda`, `torch.opencl`, `torch.accelerator` and `torch.random` share: devices, streams, generators."""
