"""Clusters: DBSCAN and HDBSCAN of points, DBSCAN of pairs, components in rounds, what sets clusters apart."""
