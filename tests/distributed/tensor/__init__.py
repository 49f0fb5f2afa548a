"""DTensors and tensor parallelism: programs that mpiexec runs, and the tests that start them."""
