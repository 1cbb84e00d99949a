"""Best matches: the pairs of two sets of rows within ε that no other pair of a row dominates."""
