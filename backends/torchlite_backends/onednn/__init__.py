"""CPU convolutions on oneDNN, if its library is installed, through its C API of version 3."""
