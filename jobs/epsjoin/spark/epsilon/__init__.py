"""The step ``fit_epsilon``, the same on frames, and the k-distances that the report shows."""
