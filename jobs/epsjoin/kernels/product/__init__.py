"""Compiled loops of joins by products of matrices: the pairs that a product lets through, and its rows."""
