"""A job whose tasks find no core: it shows its progress every second, until somebody ends it."""

from epsjoin.spark.job.session import get_session
from epsjoin.spark.tasks.progress import progress_shown

session = get_session("waiting")
with progress_shown(session, seconds=1.0):
    session.range(9).count()
