"""URIs: what each library takes, and what is no place of a lake."""

from __future__ import annotations

import pytest

from epsjoin.errors import ArgumentError, EpsjoinError
from epsjoin.lake import uris
from tests.password_uris import WITH_PASSWORD, WITHOUT_PASSWORD


@pytest.mark.parametrize("text", ["lake", "./lake", "~/lake"])
def test_lake_uri__refuses_a_relative_path(text: str) -> None:
    with pytest.raises(ArgumentError, match="--lake must be a URI"):
        uris.parse_lake_uri(text)


def test_lake_uri__refuses_a_host_that_was_meant_as_a_folder() -> None:
    with pytest.raises(ArgumentError, match="a file URI has three slashes"):
        uris.parse_lake_uri("file://lake2/tables")


@pytest.mark.parametrize(
    "text", ["/data/my%20lake", "file:///data/my%2520lake", "/data/a\\b", "s3://b/%25C3"]
)
def test_lake_uri__refuses_a_name_that_deltalake_takes_for_another(text: str) -> None:
    with pytest.raises(
        ArgumentError, match=r"^--lake: /.* has (%20|%C3|\\) in its name.* take another folder$"
    ):
        uris.parse_lake_uri(text)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("file:///data/lake#2", "no # follows on 'file:///data/lake'; in a folder's name it is written %23$"),
        (
            "s3://b/lake?secret_key=x",
            "no [?] follows on 's3://b/lake'; in a folder's name it is written %3F$",
        ),
        ("file://", "a file URI has three slashes, file:///..., not 'file://'$"),
        ("file://localhost", "a file URI has three slashes, file:///..., not 'file://localhost'$"),
        (
            "s3://b[ucket/lake",
            "^--lake has a character that no host may have, such as a .* the next /; correct it$",
        ),
        ("/data/a\nb", "has a control character; take another folder$"),
        ("file:///data/a%0Ab", "has a control character; take another folder$"),
        ("file:///data/a\udce9", "has a control character; take another folder$"),
        ("/data/a\ud800", "has a control character; take another folder$"),
        ("file:///data/a%E9", "has bytes in its name that are not UTF-8; take another folder$"),
    ],
)
def test_lake_uri__refuses_what_is_no_end_of_a_folder(text: str, sentence: str) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        uris.parse_lake_uri(text)


@pytest.mark.parametrize("uri", WITH_PASSWORD)
def test_uri__with_a_password_is_refused_without_a_word_of_it(uri: str) -> None:
    for refuse in (uris.parse_lake_uri, uris.filesystem_of):
        with pytest.raises(ArgumentError, match="as if it held a password") as refused:
            refuse(uri)
        assert "KEY" not in str(refused.value)
        assert "ret" not in str(refused.value)


@pytest.mark.parametrize("text", WITHOUT_PASSWORD)
def test_lake_uri__may_have_a_container_a_port_and_a_colon(text: str) -> None:
    assert uris.parse_lake_uri(text) == text


def test_filesystem__of_a_host_that_is_none_is_refused_by_what_the_uri_is_for() -> None:
    with pytest.raises(ArgumentError, match="^the URI of a lake, .* has a character that no host may have"):
        uris.filesystem_of("s3://b[ucket/lake")


def test_filesystem__that_cannot_be_reached_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HADOOP_HOME", "ARROW_LIBHDFS_DIR"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(EpsjoinError, match="^hdfs://localhost:1/lake: .*; docs/clusters.md has what"):
        uris.filesystem_of("hdfs://localhost:1/lake")


def test_lake_uri__quotes_what_may_not_stand_in_a_uri() -> None:
    assert uris.parse_lake_uri("s3://bucket/my lake/ä%20") == "s3://bucket/my%20lake/%C3%A4%20"


@pytest.mark.parametrize(
    "text",
    ["/data/my lake", "file:///data/my%20lake", "/data/100%", "/data/ü#?[]", "/data/\u3000lake"],
)
def test_lake_uri__takes_any_other_name(text: str) -> None:
    assert uris.parse_lake_uri(text).startswith("file:///data/")


@pytest.mark.parametrize(
    ("uri", "spark", "others"),
    [
        ("file:///data/my%20lake", "file:///data/my lake", "file:///data/my%20lake"),
        ("file://localhost/lake", "file:///lake", "file://localhost/lake"),
        ("s3a://bucket/my%20lake", "s3a://bucket/my lake", "s3://bucket/my%20lake"),
        ("s3://bucket/lake", "s3a://bucket/lake", "s3://bucket/lake"),
        ("hdfs://name:8020/lake", "hdfs://name:8020/lake", "hdfs://name:8020/lake"),
        ("hdfs:///lake", "hdfs:///lake", "hdfs:///lake"),
        ("gs://bucket/s3a%3A//lake", "gs://bucket/s3a://lake", "gs://bucket/s3a%3A//lake"),
        (
            "abfss://box@account.dfs.core.windows.net/lake",
            *["abfss://box@account.dfs.core.windows.net/lake"] * 2,
        ),
    ],
)
def test_uri_for__is_what_each_library_takes(uri: str, spark: str, others: str) -> None:
    assert uris.uri_for("spark", uri) == spark
    assert uris.uri_for("pyarrow", uri) == others
    assert uris.uri_for("deltalake", uri) == others


@pytest.mark.parametrize(
    ("uri", "kind", "path"),
    [
        ("file:///data/my%20lake", "local", "/data/my lake"),
        ("s3a://bucket/my%20lake", "s3", "bucket/my lake"),
        ("s3://bucket/lake", "s3", "bucket/lake"),
        ("gs://bucket/my%20lake", "gcs", "bucket/my lake"),
        ("abfss://box@account.dfs.core.windows.net/my%20lake", "abfs", "box/my lake"),
    ],
)
def test_filesystem_of__knows_the_stores(
    monkeypatch: pytest.MonkeyPatch, uri: str, kind: str, path: str
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")  # else pyarrow asks AWS for the region
    filesystem, inner = uris.filesystem_of(uri)
    assert (filesystem.type_name, inner) == (kind, path)


def test_parse_table_uri__is_a_folder_with_a_name() -> None:
    assert uris.parse_table_uri("/lake/pairs//", "to") == "file:///lake/pairs"
    for root in ("/", "file:///", "s3://bucket"):
        with pytest.raises(ArgumentError, match=f"to: '{root}' names no folder; give the table"):
            uris.parse_table_uri(root, "to")


@pytest.mark.parametrize("uri", ["s4://bucket/lake", "http://host/lake", "s3://"])
def test_filesystem__of_a_uri_that_none_knows_is_refused(uri: str) -> None:
    """As of a slip of the pen: pyarrow's own error ended a command with a traceback."""
    with pytest.raises(
        ArgumentError, match=r"navaids/points: .*; a lake is file:///folder, s3a://bucket/folder"
    ):
        uris.filesystem_of(f"{uri}/navaids/points")
