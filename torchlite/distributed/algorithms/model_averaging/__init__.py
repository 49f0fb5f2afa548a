"""Models whose processes train alone and take the mean of their parameters now and then."""
