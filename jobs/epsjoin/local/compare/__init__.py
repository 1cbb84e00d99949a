"""Clusters of successive runs: where their records went, the names that stay, and what happened to them."""
