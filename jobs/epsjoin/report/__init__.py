"""The page that shows a person what a run found."""
