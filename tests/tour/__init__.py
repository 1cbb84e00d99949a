"""A scripted tour through Airflow as ``make up`` starts it, in a browser without a window."""
