"""Joins of labelled trees by edit distance."""
