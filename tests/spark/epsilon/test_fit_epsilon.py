"""The step fit_epsilon: what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from epsjoin.errors import BudgetError, DataRefusedError
from epsjoin.spark.epsilon import fit_epsilon
from epsjoin.spark.ingest import ingest
from tests.spark.conftest import JobMaker
from tests.spark.real_data import job_on, pendigits


def test_fit_epsilon__refuses_too_many_pairs_and_names_the_eps_that_fits(
    make_job: JobMaker, tmp_path: Path
) -> None:
    job = job_on(make_job, tmp_path, pendigits(), {"eps": 2.0, "max_pairs": 10_000})
    ingest.run(job)
    with pytest.raises(
        BudgetError, match=r"would give about .* 10,000 are allowed .* largest eps that fits is about 0\.\d+"
    ):
        fit_epsilon.run(job)


def test_fit_epsilon__refuses_to_choose_where_there_is_no_power_law(
    make_job: JobMaker, tmp_path: Path
) -> None:
    job = job_on(make_job, tmp_path, np.zeros((50, 2)), {})
    ingest.run(job)
    with pytest.raises(DataRefusedError, match="eps cannot be chosen from these points"):
        fit_epsilon.run(job)
