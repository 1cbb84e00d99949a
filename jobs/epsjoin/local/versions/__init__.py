"""Records with a history: version trees, ranges of runs, eras, and the paper's pages."""
