"""Whole algorithms on arrays, for one machine and for one task of a Spark job."""
