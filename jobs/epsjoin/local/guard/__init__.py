"""The guard: how a snapshot differs from the one before it, and whether that is believable."""
