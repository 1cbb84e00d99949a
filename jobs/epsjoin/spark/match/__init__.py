"""Best matches of the records of two data sets."""
