"""The draft of a data set's contract, guessed from the first records of one of its files."""
