"""Compiled loops of best matches: the criteria of given pairs, and which pairs no other one dominates."""
