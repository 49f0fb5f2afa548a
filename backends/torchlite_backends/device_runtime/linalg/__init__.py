"""Matrix products, factorisations, solvers, and discrete Fourier transforms."""
