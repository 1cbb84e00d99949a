"""What tasks are given, what they run and report, and what they cost."""
