"""The report's figures: Matplotlib, the same bytes for the same data, light and dark."""
