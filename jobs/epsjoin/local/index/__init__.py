"""Points kept for joins that come later, one query or a few at a time."""
