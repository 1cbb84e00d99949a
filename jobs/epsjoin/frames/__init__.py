"""Joins of frames: pandas, polars and Arrow tables in, the same kind out, with ids of any type.

None of these packages is imported: whoever passes a frame has imported its package. Only other objects, which
hand out an Arrow stream, are read by pyarrow.
"""
