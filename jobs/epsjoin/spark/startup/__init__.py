"""What makes the start of a job quick: workers, kernels and classes that are loaded before."""
