"""Differentials: what differs between two files of rows, by every algorithm of Labio and Garcia-Molina."""
