"""Checks arguments by a tool's schema. Usual mistakes of models are repaired and reported, others are an error."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from itertools import groupby, islice
from threading import Lock
from typing import Any

from cachetools import LRUCache, cached

from toolscout.errors import InvalidArgumentsError
from toolscout.models import Tool
from toolscout.text import cut

_WRAPPERS = ("arguments", "args", "input", "params", "parameters")
_MAX_ERRORS = 5
_MAX_ERRORS_READ = 100
_MAX_ERROR_CHARS = 1_000
_MAX_NAMES = 20
_COMPOSED = ("$ref", "allOf", "anyOf", "oneOf", "if", "patternProperties", "unevaluatedProperties")


def validate_arguments(tool: Tool, value: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments to send and the repairs that were made, or raise InvalidArgumentsError."""
    arguments, repairs = _unwrap(tool, value)
    problems = _problems(tool, arguments)
    if problems:
        arguments, conversions = _convert_values(tool.input_schema, arguments)
        repairs = (*repairs, *conversions)
        if conversions:
            problems = _problems(tool, arguments)
    if not problems:
        return arguments, repairs
    problems += (cut(problem, _MAX_ERROR_CHARS) for problem in _unknown(tool.input_schema, arguments))
    raise InvalidArgumentsError(
        f"{tool.key} does not accept these arguments: " + "; ".join(problems[:_MAX_ERRORS]),
        hint="correct them by the schema and call again; nothing was sent",
        details={"input_schema": tool.input_schema},
    )


def validate_apart(tool: Tool, value: Any) -> tuple[dict[str, Any], tuple[str, ...]] | InvalidArgumentsError:
    """Do the same in another process, to which an error is returned as a value."""
    try:
        return validate_arguments(tool, value)
    except InvalidArgumentsError as error:
        return error


def _unwrap(tool: Tool, value: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Unwrap arguments that are a JSON string, or nested one level too deep."""
    repairs: list[str] = []
    if value is None:
        value = {}
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            value = None
        else:
            repairs.append("arguments were a JSON string; they are an object now")
    if not isinstance(value, Mapping):
        raise InvalidArgumentsError(
            f"the arguments of {tool.key} must be an object",
            hint='give them as {"parameter": value}; nothing was sent',
            details={"input_schema": tool.input_schema},
        )
    parameters = _properties(tool.input_schema)
    if len(value) == 1:
        wrapper, inner = next(iter(value.items()))
        if wrapper in _WRAPPERS and wrapper not in parameters and isinstance(inner, Mapping) and parameters:
            repairs.append(f"arguments were nested under {wrapper!r}; they are unwrapped now")
            value = inner
    return dict(value), tuple(repairs)


def _convert_values(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Convert values to the type that the schema requires, and drop a null where the parameter is optional."""
    values: dict[str, Any] = {}
    repairs: list[str] = []
    required = schema.get("required") or ()
    for name, value in arguments.items():
        kinds = _kinds(_properties(schema).get(name))
        if value is None and kinds and "null" not in kinds and name not in required:
            repairs.append(f"{name} was null; it is left out now")
            continue
        values[name] = _convert(value, kinds)
        if values[name] is not value:
            repairs.append(f"{name} was {_kind_of(value)}; it is {_kind_of(values[name])} now")
    return values, repairs


def _convert(value: Any, kinds: frozenset[str]) -> Any:
    if isinstance(value, str) and kinds and "string" not in kinds:
        parsed = _parse(value)
        if _kind_of(parsed) in (kinds | {"integer"} if "number" in kinds else kinds):
            return parsed
    if isinstance(value, (int, float)) and not isinstance(value, bool) and kinds == {"string"}:
        return json.dumps(value)
    if kinds == {"array"} and value is not None and not isinstance(value, (list, Mapping)):
        return [value]
    return value


def _parse(text: str) -> Any:
    """Parse a text as JSON, or as `True` or `False` of Python. Any other text is returned as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return {"true": True, "false": False}.get(text.strip().lower(), text)


def _kind_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "object" if isinstance(value, Mapping) else "array"


def _properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    properties = schema.get("properties")
    return properties if isinstance(properties, Mapping) else {}


def _kinds(parameter: Any) -> frozenset[str]:
    """Return the JSON types of a parameter, from `type`, `anyOf` or `oneOf`. The set is empty if they are unclear."""
    if not isinstance(parameter, Mapping):
        return frozenset()
    kind = parameter.get("type")
    if isinstance(kind, str):
        return frozenset({kind})
    if isinstance(kind, list):
        return frozenset(item for item in kind if isinstance(item, str))
    for word in ("anyOf", "oneOf"):
        options = parameter.get(word)
        if isinstance(options, list):
            each = [_kinds(option) for option in options]
            return frozenset().union(*each) if all(each) else frozenset()
    return frozenset()


def _problems(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """Describe what is wrong, by parameter. A schema that is itself invalid accepts everything."""
    from referencing.exceptions import Unresolvable

    validator = _validator(tool)
    if validator is None:
        return []
    try:
        each = groupby(validator.iter_errors(arguments), key=_place)
        errors = [next(group) for _, group in islice(each, _MAX_ERRORS_READ)]
    except (Unresolvable, RecursionError, re.error, ArithmeticError, ValueError):  # the last two for extreme numbers
        return []
    errors.sort(key=lambda error: [str(part) for part in error.path])
    return [cut(_describe(error), _MAX_ERROR_CHARS) for error in errors]


def _place(error: Any) -> tuple[Any, ...]:
    """Return what is equal for the errors of all missing names of one object: they are described together."""
    message = "" if error.validator == "required" else error.message
    return error.absolute_path, error.absolute_schema_path, message


def _cache_key(tool: Tool) -> tuple[str, str]:
    return tool.key, tool.fingerprint or json.dumps(tool.input_schema, sort_keys=True)


@cached(LRUCache(1_024), key=_cache_key, lock=Lock())
def _validator(tool: Tool) -> Any:
    """Return the validator of a definition, or None if its schema is empty or invalid."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing import Registry

    if not tool.input_schema:
        return None
    try:
        Draft202012Validator.check_schema(tool.input_schema)
    except (SchemaError, RecursionError):
        return None
    # An empty registry: a `$ref` into the network is an error here, never a request.
    return Draft202012Validator(tool.input_schema, registry=Registry())


def _unknown(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> list[str]:
    """Name the arguments that a schema does not declare: often one of them is what is missing, misspelt."""
    if schema.get("additionalProperties") is False or any(word in schema for word in _COMPOSED):
        return []  # reported already, or not to be told from the properties alone
    parameters = _properties(schema)
    unknown = [name for name in arguments if name not in parameters]
    if not unknown or not (parameters or schema.get("properties") == {}):
        return []
    names = ", ".join(repr(name[:100]) for name in unknown[:_MAX_NAMES])
    return [f"unknown {names}; it takes {', '.join(list(parameters)[:_MAX_NAMES]) or 'none'}"]


def _describe(error: Any) -> str:
    where = ".".join(str(part) for part in error.absolute_path)
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        more = f" and {len(missing) - _MAX_NAMES} more" if len(missing) > _MAX_NAMES else ""
        return f"{where + ': ' if where else ''}{', '.join(map(repr, missing[:_MAX_NAMES]))}{more} is missing"
    if error.validator == "additionalProperties" and error.validator_value is False:
        unknown = _unknown({**error.schema, "additionalProperties": True}, error.instance)
        return f"{where + ': ' if where else ''}{unknown[0] if unknown else error.message[:200]}"
    if error.validator == "enum":
        return f"{where} must be one of {', '.join(map(repr, error.validator_value[:20]))}"
    if error.validator == "type":
        return f"{where or 'the arguments'} must be {error.validator_value}, not {_kind_of(error.instance)}"
    return f"{where or 'the arguments'}: {error.message[:200]}"
