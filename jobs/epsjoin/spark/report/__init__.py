"""What the report shows of a run, and of the runs before."""
