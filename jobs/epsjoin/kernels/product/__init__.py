"""Compiled loops of joins by products of matrices: what a product leaves, and the rows that it is made of."""
