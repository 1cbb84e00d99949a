"""Compiled loops of nearest neighbours."""
