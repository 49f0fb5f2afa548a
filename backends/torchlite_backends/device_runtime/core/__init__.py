"""Core of the device runtime: array, device, launches, lazy fusion, copies, host transfers."""
