"""The parts of torch.save and torch.load: the zip archive, names of classes, the restricted
unpickler, the old format.
"""
