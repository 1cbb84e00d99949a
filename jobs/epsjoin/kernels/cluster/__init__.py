"""Compiled loops of clusters: union-find, degrees and border points, rounds of components."""
