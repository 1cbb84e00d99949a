"""A run beside the run before: records that differ, flows between clusters, names that stay, events."""
