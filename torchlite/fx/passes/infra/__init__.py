"""Infrastructure: pass base class, pass manager, partitioner."""
