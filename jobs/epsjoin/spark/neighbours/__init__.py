"""The step outliers: ranks of points by their neighbours."""
