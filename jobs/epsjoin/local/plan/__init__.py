"""How a join is cut into parts: the cuts, their costs, the tree, the plan."""
