"""The step ``outliers``, and the nearest neighbours of a few points."""
