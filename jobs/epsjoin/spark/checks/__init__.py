"""The quality gates, and the check of stored pairs, clusters and outliers by brute force."""
