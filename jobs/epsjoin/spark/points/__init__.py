"""Points with ids: in which columns of a frame or a table they lie, and how they are sampled."""
