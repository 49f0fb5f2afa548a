"""Internals of torch.save and torch.load: zip archive, class names, weights-only unpickler, legacy format."""
