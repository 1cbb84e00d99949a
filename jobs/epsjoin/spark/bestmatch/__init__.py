"""Best matches, the nearest rows by several criteria at once: of two frames, and in the step ``match``."""
