"""The commands of ``epsjoin``: one file per command, named like it."""
