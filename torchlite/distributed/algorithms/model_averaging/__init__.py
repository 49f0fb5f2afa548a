"""Model averaging: processes train independently and average their parameters periodically."""
