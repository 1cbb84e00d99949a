"""Rows in a table's files, in a frame or on the way: how they are read, worked on and written."""
