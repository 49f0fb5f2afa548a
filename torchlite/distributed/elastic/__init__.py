"""`torch.distributed.elastic`: `record`, which reports the errors of processes to `torchlite-run`."""
