"""Matrix products, factorisations and what follows from them, and discrete Fourier transforms."""
