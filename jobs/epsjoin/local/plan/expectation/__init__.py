"""What a join is expected to have, counted on a sample.

* Pairs of the sample: ``sample_pairs`` counts them, ``held_pairs`` keeps them for smaller eps,
  ``decided_pairs`` are those that a leaf decides
* What follows: for all rows ``expected``, for each part ``expected_parts``
"""
