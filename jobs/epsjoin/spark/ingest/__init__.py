"""The step ``ingest``: files to typed points."""
