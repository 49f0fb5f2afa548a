"""torchvision's compiled ops."""
