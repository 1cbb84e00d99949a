"""Choosing eps: the power law of pair counts, its radius, its regions; what a join is expected to yield."""
