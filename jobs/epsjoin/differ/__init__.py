"""What differs between two snapshots, files or Arrow tables, by the algorithms of ``local/differ``."""
