"""What all kernels stand on: the array and its views, devices and their launches, ops that wait, copies, transfers."""
