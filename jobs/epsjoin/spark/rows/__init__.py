"""Rows in a table's files, in a frame or in transit: how they are read, processed and written."""
