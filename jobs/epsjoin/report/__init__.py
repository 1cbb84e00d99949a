"""The report page of a run, its pictures and its texts."""
