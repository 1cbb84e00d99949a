"""Joins of frames: pandas, polars and Arrow tables in, the same kind out, with ids of any type.

None of these packages is imported: who passes a frame of one has imported it. Only what is neither, but
hands out an Arrow stream, is read by pyarrow.
"""
