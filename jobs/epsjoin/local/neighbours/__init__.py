"""Nearest neighbours, local outlier factors, ranks."""
