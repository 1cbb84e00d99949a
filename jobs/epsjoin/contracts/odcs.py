"""Contracts as files of the Open Data Contract Standard, ODCS 3.1: how one is read, and what a column is.

What it must say beyond the standard is known to :mod:`epsjoin.contracts.load_source` and
:mod:`epsjoin.contracts.tables`.
"""

from __future__ import annotations

import importlib.resources
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from epsjoin.errors import ContractError

if TYPE_CHECKING:
    import jsonschema

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""What reads YAML; that of libyaml, where it is there, takes an eighth of the time."""


@dataclass(frozen=True)
class Column:
    """One column of a source or a table.

    Parameters
    ----------
    name, description : as in the contract.
    type : one of ``TYPES`` for a source; for a table the physical type (long, int, double, ...).
    required : whether a missing value is an error.
    minimum, maximum : allowed range, both ends included.
    values : the allowed values; empty: all values are allowed.
    physical_name : its name in the files of a source, if that is another one.
    decimals : number of decimals to which the values of a source are rounded; ``None``: they are not.
    form : how a date of a source is written, such as ``MM/dd/yyyy``; empty: as ISO 8601 says.
    max_nodes : of a column of documents: the maximum number of nodes; ``None``: its values are no documents.
    item : of a number of a list, which the files have in one column: its place there, 0 is the first;
        ``None``: the column is one of the files.
    """

    name: str
    type: str
    description: str = ""
    required: bool = False
    minimum: float | None = None
    maximum: float | None = None
    values: tuple[str, ...] = ()
    physical_name: str = ""
    decimals: int | None = None
    form: str = ""
    max_nodes: int | None = None
    item: int | None = None

    @property
    def in_file(self) -> str:
        """Its name in the files of a source."""
        return self.physical_name or self.name


def check_choice(place: str, key: str, value: object, choices: Sequence[str]) -> None:
    """Check that a value of a contract is one of some words.

    Parameters
    ----------
    place : the file, and where in it.

    Raises
    ------
    ContractError
        It is none; the message names all of them.
    """
    if value not in choices:
        raise ContractError(f"{place}: {key} must be one of {', '.join(choices)}, not {value!r}")


def read_contract(file: Path) -> dict[str, Any]:
    """Read a contract's file, and hold it against the standard's own JSON schema.

    Raises
    ------
    ContractError
        No such file, or not an ODCS file.
    """
    return parse_contract(file, text_of(file), checked=True)


def text_of(file: Path) -> str:
    """Read the text of a contract's file.

    Raises
    ------
    ContractError
        No such file, or this user may not read it, or it is not UTF-8.
    """
    if not file.is_file():
        there = sorted(each.name.removesuffix(".odcs.yaml") for each in file.parent.glob("*.odcs.yaml"))
        known = f"; there are {', '.join(there)}" if there else ""
        raise ContractError(
            f"no contract {file}; a data set or table is described by a file of that name{known}"
        )
    try:
        data = file.read_bytes()
    except PermissionError as error:
        raise ContractError(f"{file} cannot be read (permission denied); let this user read it") from error
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ContractError(f"{file}: line {line}: not UTF-8; save it in that encoding") from error


def parse_contract(file: Path, text: str, *, checked: bool) -> dict[str, Any]:
    """Parse the text of a contract's file: see :func:`read_contract`."""
    try:
        return _parse(text, checked)
    except ContractError as error:
        raise ContractError(f"{file}: {error}") from error


@cache
def _parse(text: str, checked: bool) -> dict[str, Any]:
    """The contract in a text, parsed once: a job reads the same few contracts many times."""
    body = _load(text)
    if checked:
        _check(body)
    if not isinstance(body, dict) or len(body.get("schema") or []) != 1:
        raise ContractError("schema must describe exactly one object")
    return body


def _load(text: str) -> object:
    """What YAML says; a key that stands twice is refused: YAML's loaders would take the last."""
    loader = _LOADER(text)
    node = None
    try:
        node = loader.get_single_node()
        _refuse_twice(node)
        return None if node is None else loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = "" if mark is None else f"line {mark.line + 1}, column {mark.column + 1}: "
        raise ContractError(f"{place}not YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # such as a date in month 13
        raise ContractError(f"not YAML: {str(error).splitlines()[0]}") from error
    finally:
        loader.dispose()


def _refuse_twice(node: yaml.Node | None) -> None:
    if isinstance(node, yaml.SequenceNode):
        for each in node.value:
            _refuse_twice(each)
    elif isinstance(node, yaml.MappingNode):
        seen = set[str]()
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value in seen:
                raise yaml.MarkedYAMLError(problem=f"{key.value} stands twice", problem_mark=key.start_mark)
            seen.add(str(key.value))
            _refuse_twice(value)


LIST = "array"
"""The type of a column of lists, in the words of the standard."""

TYPES = ("integer", "number", "string", "boolean", "date", "time", "timestamp", "object", LIST)
"""Types of the columns of a source; the standard has more."""

_OF_COLUMNS = ("SchemaElement", "SchemaBaseProperty", "SchemaProperty")
"""Definitions of the standard that say what a column has."""

_QUOTES = "YAML reads NO, 1.10 and others as something else unless they stand in quotes"

_KINDS_OF_YAML = {
    "array": 'a list, whose items begin with "- "',
    "object": "names with values (name: value)",
    "string": "a text",
    "boolean": "true or false",
    "number": "a number",
    "integer": "a whole number",
    "null": "nothing",
}


def _check(body: object) -> None:
    from jsonschema.exceptions import best_match

    if body is None:
        raise ContractError("the file is empty")
    faults = list(_validator().iter_errors(body))
    # where a value is wrong, the schema does not know other keys of its column either
    fault = best_match([each for each in faults if each.validator != "unevaluatedProperties"] or faults)
    if fault is None:
        return
    column = _column_at(fault.absolute_path, body)
    where = f"column {column['name']}: " if "name" in column else ""
    if where and "logicalType" not in column:  # the schema would say what it lacks for each type
        raise ContractError(f"{where}it has no logicalType{_ask(column, ['logicalType'])}")
    what = fault.message
    if fault.validator == "type" and isinstance(fault.validator_value, str):
        what = f"must be {_KINDS_OF_YAML[fault.validator_value]}, not {fault.instance!r}"
        if fault.validator_value == "string" and not isinstance(fault.instance, (list, dict)):
            what = f"{what}; {_QUOTES}"
    elif fault.validator == "enum" and fault.absolute_path[-1] == "logicalType":
        what = f"must be one of {', '.join(TYPES)}, not {fault.instance!r}"
    elif fault.validator in ("unevaluatedProperties", "additionalProperties"):
        schema: Any = _validator().schema
        parts = [schema["$defs"][name] for name in _OF_COLUMNS] if column else [schema]
        known = _names_in(parts)
        what = f"{what}{_ask(fault.instance, known)}"
    raise ContractError(f"{where}{fault.json_path}: {what}")


def _ask(given: Iterable[str], known: Iterable[str]) -> str:
    """Ask whether a known name was meant, where a given one is nearly the same."""
    by_letters = {name.lower(): name for name in known}
    for name in given:
        near = get_close_matches(str(name).lower(), by_letters, n=1, cutoff=0.85)
        if near and by_letters[near[0]] != name:
            return f"; is {name!r} meant to be {by_letters[near[0]]!r}?"
    return ""


def _names_in(schema: Any) -> set[str]:
    """All names of properties in a JSON schema."""
    if isinstance(schema, list):
        return {name for each in schema for name in _names_in(each)}
    if not isinstance(schema, dict):
        return set()
    own = schema.get("properties")
    inner = {name for each in schema.values() for name in _names_in(each)}
    return inner | set(own if isinstance(own, dict) else ())


def _column_at(path: Iterable[str | int], body: Any) -> dict[str, Any]:
    """The column in which a place of a contract lies; empty if it lies in none."""
    match [*path]:
        case ["schema", int(number), "properties", int(nth), *_]:
            column = body["schema"][number]["properties"][nth]
            return column if isinstance(column, dict) else {}
    return {}


@cache
def _validator() -> jsonschema.Draft201909Validator:
    import jsonschema  # a tenth of a second of CPU, which is spared where nothing is checked

    text = importlib.resources.files("open_data_contract_standard").joinpath("schema.json").read_text("utf-8")
    return jsonschema.Draft201909Validator(json.loads(text))


def key_of(properties: Sequence[Mapping[str, Any]]) -> tuple[str, ...]:
    """The names of the key columns among a schema's properties, in key order."""
    keyed = sorted((p.get("primaryKeyPosition", 1), p["name"]) for p in properties if p.get("primaryKey"))
    return tuple(name for _, name in keyed)


def custom_properties(file: Path, body: Mapping[str, Any]) -> dict[str, Any]:
    """The customProperties of a contract, or of one of its columns, by name."""
    pairs = [(p["property"], p["value"]) for p in body.get("customProperties") or []]
    twice = [name for name, n in Counter(name for name, _ in pairs).items() if n > 1]
    if twice:
        raise ContractError(f"{file}: the customProperty {twice[0]!r} occurs twice")
    return dict(pairs)


def to_column(file: Path, body: Mapping[str, Any], type_: str) -> Column:
    """The column that one of a schema's properties describes."""
    if not type_:
        raise ContractError(f"{file}: column {body.get('name')} has no type")
    options = body.get("logicalTypeOptions") or {}
    return Column(
        name=str(body["name"]),
        type=type_,
        description=str(body.get("description", "")).strip(),
        required=bool(body.get("required", False)),
        minimum=options.get("minimum"),
        maximum=options.get("maximum"),
        values=_allowed_values(file, body),
    )


def _allowed_values(file: Path, body: Mapping[str, Any]) -> tuple[str, ...]:
    """The values allowed in a column, from its rule invalidValues."""
    rules = body.get("quality") or []
    for rule in rules:
        if rule.get("metric") != "invalidValues" or rule.get("mustBe") != 0:
            raise ContractError(
                f"{file}: column {body['name']}: invalidValues, mustBe 0, is the only rule known"
            )
        if body.get("logicalType") != "string" or rule.get("severity", "error") != "error":
            raise ContractError(
                f"{file}: column {body['name']}: invalidValues is for strings and of severity error; "
                "a warning is a quality rule of the table"
            )
    if len(rules) > 1:
        raise ContractError(f"{file}: column {body['name']} has more than one rule invalidValues")
    if not rules:
        return ()
    values = (rules[0].get("arguments") or {}).get("validValues")
    if not isinstance(values, list) or not values or not all(isinstance(each, str) for each in values):
        raise ContractError(
            f"{file}: column {body['name']}: validValues must be a list of texts, not {values!r}; {_QUOTES}"
        )
    return tuple(values)
