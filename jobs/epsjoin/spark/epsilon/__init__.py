"""The step fit_epsilon, and what the report shows of eps."""
