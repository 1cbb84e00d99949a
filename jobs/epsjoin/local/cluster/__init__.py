"""Clusters: DBSCAN from points and from pairs, components in rounds."""
