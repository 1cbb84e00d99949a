"""The steps replicate and merge_join, and the same on frames."""
