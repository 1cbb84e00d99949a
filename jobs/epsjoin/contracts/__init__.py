"""Contracts of sources and tables: the files, the conditions on rows, the published versions."""
