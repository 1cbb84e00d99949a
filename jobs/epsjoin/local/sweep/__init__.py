"""Sweeps over sorted rows, in threads, and the pairs that they find."""
