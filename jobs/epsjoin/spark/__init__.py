"""The only floor that knows Spark and Delta."""
