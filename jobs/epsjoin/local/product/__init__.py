"""Products of blocks of rows as a filter, in many dimensions: filter rows, BLAS, the sweep over blocks."""
