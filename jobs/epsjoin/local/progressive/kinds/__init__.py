"""The kinds of progressive joins: what rows are joined on, and the sweep areas that find their pairs."""
