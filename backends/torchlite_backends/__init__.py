"""The array runtimes behind torchlite: one package each, and the packages that several of them share."""

# The engines of the CPU's kernels by name: modules with an object `engine`, each loaded at its first use.
CPU_ENGINES = {"cc": "torchlite_backends.cc.cpu_engine", "opencl": "torchlite_backends.opencl.cpu_engine"}
