"""Compiled loops of the join: codes, cuts, sweeps, pairs."""
