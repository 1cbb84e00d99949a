"""A job whose tasks find no core: it shows its progress every second, until somebody ends it."""

from epsjoin.spark.progress import progress_shown
from epsjoin.spark.session import get_session

session = get_session("waiting")
with progress_shown(session, seconds=1.0):
    session.range(9).count()
