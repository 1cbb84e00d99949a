"""Compiled loops of clusters: union-find, DBSCAN on pairs, spanning trees, rounds of components."""
