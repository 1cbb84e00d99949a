"""Progressive joins of arrays, of streams and of files."""
