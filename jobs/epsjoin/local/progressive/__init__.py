"""Progressive joins: sorted runs that are joined as they are read, and merges of them that find the rest."""
