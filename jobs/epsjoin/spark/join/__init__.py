"""The steps ``replicate``, ``merge_join`` and ``refine``, and the joins of frames."""
