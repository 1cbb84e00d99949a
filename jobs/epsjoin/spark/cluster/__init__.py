"""The step ``cluster``: DBSCAN from stored pairs; and clusters of a frame of pairs."""
