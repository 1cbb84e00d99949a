"""Joins of arrays, of parts, of boxes; what they would give."""
