"""Jobs killed anywhere and run again: whether the tables are those of an undisturbed run."""
