"""URIs that hold a password, which no message may repeat, and others that look a little like them."""

from __future__ import annotations

_SECRETS = (
    *("secret", "sec/ret", "sec?ret", "sec@ret", "se[ret", "\u2100ret"),
    *("12ret", "12/ret", "12?ret", "12"),
)
WITH_PASSWORD = (
    *(f"s3://KEY:{secret}@bucket/lake" for secret in _SECRETS),
    *("s3_a://KEY:secret@bucket/lake", "s3://KEY:sec/ret", "s3a:///KEY:secret@bucket/lake"),
    *("s3a:/KEY:secret@bucket/lake", "hdfs://user:secret@name:8020/lake"),
)
WITHOUT_PASSWORD = (
    *("abfss://tables@account.dfs.core.windows.net/lake", "hdfs://[::1]:8020/lake", "hdfs://name:8020/lake"),
    *("s3://bucket/a:b@c", "file:///a:b@c/lake", "hdfs://name:8020/user/jane@corp/lake"),
)
