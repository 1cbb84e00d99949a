"""Gathers what the report of a run shows: a module for each section of the page."""
