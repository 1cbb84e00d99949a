"""Joins of arrays, of parts, of boxes, of points that have changed; the first pairs."""
