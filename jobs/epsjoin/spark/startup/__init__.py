"""What makes jobs start quickly: workers, kernels and classes that are loaded in advance."""
