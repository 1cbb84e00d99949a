"""The floor of stored tables: Delta and Parquet by deltalake and pyarrow, without Spark."""
