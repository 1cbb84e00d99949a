"""Best matches of two frames: the nearest rows by several criteria at once."""
