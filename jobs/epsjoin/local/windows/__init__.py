"""Windows over the last batches: which values came and went, rows of a value, pairs that a batch brings.

A window is a sequence of batches, of which the oldest leaves when a new one comes: the *basic windows* of
Golab, Garg and Özsu, "On Indexing Sliding Windows over Online Data Streams" (EDBT 2004), section 3.2. In a
pipeline of snapshots, a run is a batch.
"""
