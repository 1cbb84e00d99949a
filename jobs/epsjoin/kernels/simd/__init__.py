"""Instructions on several numbers side by side, by which sweeps and searches go through memory quickly."""
