"""The gates, and the check of what is stored by brute force."""
