"""The step ``fit_epsilon``, and the k-distances that the report shows."""
