"""Tests of torchlite.distributed.elastic."""
