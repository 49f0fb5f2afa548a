"""Experimental parts of torch.fx."""
