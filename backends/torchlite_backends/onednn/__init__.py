"""oneDNN, where its library is installed: convolutions of the CPU, through its C API of version 3."""
