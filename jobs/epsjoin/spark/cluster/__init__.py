"""The step ``cluster``: DBSCAN from stored pairs."""
