"""CPU engine `cc`: kernel sources compiled by the machine's C++ compiler."""
