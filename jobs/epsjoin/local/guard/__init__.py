"""The guard at the door: what a snapshot shows beside the one before it, and whether that is believable."""
