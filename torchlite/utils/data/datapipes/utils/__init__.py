"""Helpers of DataPipes: files, decoders and the position of a pipe."""
