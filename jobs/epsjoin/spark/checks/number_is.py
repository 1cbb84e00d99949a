"""The one expectation of the gates: that a number is what it must be; imported with Great Expectations."""

from __future__ import annotations

from typing import Any

from great_expectations.expectations.core.expect_column_max_to_be_between import ExpectColumnMaxToBeBetween
from great_expectations.expectations.expectation_configuration import ExpectationConfiguration
from great_expectations.validator.metric_configuration import MetricConfiguration
from great_expectations.validator.validator import ValidationDependencies
from pydantic.v1 import PrivateAttr

_WHOLE_ROW = {"n_rows": 1, "fetch_all": False}


class NumberIs(ExpectColumnMaxToBeBetween):
    """The one number of a column is what it must be.

    It takes no conditions on rows: the library would look each of them up ten times.
    """

    domain_keys = ("batch_id", "column")
    _configuration: ExpectationConfiguration | None = PrivateAttr(None)

    @property
    def configuration(self) -> ExpectationConfiguration:
        """The configuration of the expectation, made once, since the library asks for it again and again."""
        if self._configuration is None:
            self._configuration = super().configuration
        return self._configuration

    def get_validation_dependencies(self, *_: Any, **__: Any) -> ValidationDependencies:
        """Ask for the row of all numbers, fetched once, not for a column, its type and its maximum."""
        row = MetricConfiguration("table.head", {"batch_id": self.batch_id}, _WHOLE_ROW)
        return ValidationDependencies({"row": row}, {"result_format": "BASIC"})

    def _validate(self, metrics: Any, *of: Any, **named: Any) -> Any:
        number = {"column.max": metrics["row"][self.column].iloc[0]}
        return self._validate_metric_value_between("column.max", number, *of, **named)
