"""Best matches beyond arrays in memory: of files by pages, and as SQL; decided by ``local/bestmatch``."""
