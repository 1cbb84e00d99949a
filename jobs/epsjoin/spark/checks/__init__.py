"""The quality gates, and the check of stored pairs and clusters by brute force."""
