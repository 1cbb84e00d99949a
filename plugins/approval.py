"""The task that asks a person to approve eps, between the task that chooses it and the join."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from airflow.providers.standard.operators.hitl import ApprovalOperator
from airflow.sdk import Context

from project import AIRFLOW

_CHOSEN = "ti.xcom_pull(task_ids='fit_epsilon')"


def _format_number(name: str, form: str = ".6g") -> str:
    """Write the template of a number of ``fit_epsilon``; a fit without a power law lacks some of them."""
    value = f"{_CHOSEN}['{name}']"
    return f"{{{{ '{{:{form}}}'.format({value}) if {value} is defined else 'not known' }}}}"


class ApproveEpsilon(ApprovalOperator):
    """Ask whether the run may join with the eps that ``fit_epsilon`` chose; this task follows that one.

    After an approval the run goes on. After a rejection all further tasks are skipped and the run ends with
    success, because the question was answered. Without an answer in time the run goes on with the eps as
    fitted. While it waits, it occupies no slot of a pool and no worker.

    Parameters
    ----------
    within : how long to wait for an answer.
    **kwargs : further arguments of ``ApprovalOperator``.
    """

    def __init__(self, *, within: timedelta, **kwargs: Any) -> None:
        defaults: dict[str, Any] = {
            "task_id": "approve_epsilon",
            "subject": f"Join {{{{ dag.dag_id }}}}, run {{{{ ds }}}}, with eps {_format_number('eps')}?",
            "body": (
                "| | |\n|---|---|\n"
                f"| eps, in the unit of the metric | {_format_number('eps')} |\n"
                f"| pairs expected | {_format_number('expected_pairs', ',.0f')} |\n"
                f"| exponent of the pair count | {_format_number('exponent', '.2f')} |\n\n"
                "**Approve**: join, cluster and report with this eps. **Reject**: this run ends here, and "
                f"its tables stay as they are. Without an answer within {_describe_span(within)} the run "
                "goes on."
            ),
            "defaults": self.APPROVE,
            "response_timeout": within,
        }
        super().__init__(**(defaults | kwargs))

    def execute_complete(self, context: Context, event: dict[str, Any]) -> Any:
        """Take the answer; after a rejection the log says what to do next."""
        if event.get("chosen_options") == [self.REJECT]:  # the base class raises after that
            self.log.warning(
                "eps was rejected: nothing is joined, what follows is skipped. For another eps: "
                "%s backfill create --dag-id %s --from-date %s --to-date %s "
                """--reprocess-behavior completed --dag-run-conf '{"eps": ...}'""",
                AIRFLOW,
                context["dag"].dag_id,
                context["ds"],
                context["ds"],
            )
        return super().execute_complete(context, event)


def _describe_span(span: timedelta) -> str:
    minutes = round(span.total_seconds() / 60)
    return f"{minutes / 60:g} hours" if minutes >= 120 else f"{minutes} minutes"
