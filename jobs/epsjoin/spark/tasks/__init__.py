"""What tasks are given, run and report, and what they cost."""
