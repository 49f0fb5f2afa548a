"""The engine `cc`: kernel texts compiled by the machine's C++ compiler for tensors on the CPU."""
