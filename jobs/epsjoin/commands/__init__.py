"""The commands of ``epsjoin``, a file for each, by its name."""
