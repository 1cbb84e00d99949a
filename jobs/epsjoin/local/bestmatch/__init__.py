"""Best matches: of two sets of rows the pairs within ε of which no other is better in all criteria."""
