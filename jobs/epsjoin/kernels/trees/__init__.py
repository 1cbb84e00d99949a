"""Trees: their shapes, histograms that bound the edit distance, and the edit distance itself."""
