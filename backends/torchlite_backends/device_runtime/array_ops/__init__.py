"""Array library kernels: elementwise, reductions, indexing, sorting, random numbers."""
