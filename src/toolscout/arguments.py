"""Arguments against a tool's schema: what models usually get wrong is repaired and told, the rest is said plainly."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from toolscout.errors import InvalidArgumentsError
from toolscout.models import Tool

_WRAPPERS = ("arguments", "args", "input", "params", "parameters")
_MAX_ERRORS = 5
_MAX_VALIDATORS = 1_024
_validators: dict[tuple[str, str], Any] = {}


def validate_arguments(tool: Tool, given: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the arguments to send and the repairs that were made; raise InvalidArgumentsError when they cannot do."""
    arguments, repairs = _as_object(tool, given)
    problems = _problems(tool, arguments)
    if problems:
        repaired, made = _repaired(tool.input_schema, arguments)
        left = _problems(tool, repaired) if made else problems
        if not left:
            return repaired, (*repairs, *made)
        problems = left
    if not problems:
        return arguments, repairs
    raise InvalidArgumentsError(
        f"{tool.key} does not accept these arguments: " + "; ".join(problems[:_MAX_ERRORS]),
        hint="correct them by the schema and call again; nothing was sent",
        details={"input_schema": tool.input_schema},
    )


def _as_object(tool: Tool, given: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Unwrap arguments that came as a JSON string, or one level too deep."""
    repairs: list[str] = []
    if given is None:
        given = {}
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            given = None
        else:
            repairs.append("arguments were a JSON string; they are an object now")
    if not isinstance(given, Mapping):
        raise InvalidArgumentsError(
            f"the arguments of {tool.key} must be an object",
            hint='give them as {"parameter": value}; nothing was sent',
            details={"input_schema": tool.input_schema},
        )
    known = _properties(tool.input_schema)
    if len(given) == 1:
        wrapper, inner = next(iter(given.items()))
        if wrapper in _WRAPPERS and wrapper not in known and isinstance(inner, Mapping) and known:
            repairs.append(f"arguments were nested under {wrapper!r}; they are unwrapped now")
            given = inner
    return dict(given), tuple(repairs)


def _repaired(schema: Mapping[str, Any], arguments: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Convert values whose kind the schema leaves no doubt about; drop a null where the parameter is optional."""
    repaired: dict[str, Any] = {}
    made: list[str] = []
    required = schema.get("required") or ()
    for name, value in arguments.items():
        kinds = _kinds(_properties(schema).get(name))
        if value is None and kinds and "null" not in kinds and name not in required:
            made.append(f"{name} was null; it is left out now")
            continue
        converted = _converted(value, kinds)
        if converted is not value:
            made.append(f"{name} was {_kind_of(value)}; it is {_kind_of(converted)} now")
        repaired[name] = converted
    return repaired, made


def _converted(value: Any, kinds: frozenset[str]) -> Any:
    if isinstance(value, str) and kinds and "string" not in kinds:
        read = _read(value)
        if _kind_of(read) in _accepted(kinds):
            return read
    if isinstance(value, (int, float)) and not isinstance(value, bool) and kinds == {"string"}:
        return json.dumps(value)
    if kinds == {"array"} and value is not None and not isinstance(value, (list, Mapping)):
        return [value]
    return value


def _read(text: str) -> Any:
    """Read a text as the JSON that it may be; `True` and `False` as Python writes them, too."""
    try:
        return json.loads(text)
    except ValueError:
        return {"true": True, "false": False}.get(text.strip().lower(), text)


def _accepted(kinds: frozenset[str]) -> frozenset[str]:
    return kinds | {"integer"} if "number" in kinds else kinds


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
    """Return the JSON types that a parameter takes, from `type`, `anyOf` or `oneOf`; none when it is not clear."""
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
    """Say what is wrong in words that name the parameter; a schema that is itself broken hinders nobody."""
    from referencing.exceptions import Unresolvable

    validator = _validator(tool)
    if validator is None:
        return []
    try:
        found = sorted(validator.iter_errors(arguments), key=lambda error: [str(part) for part in error.path])
    except (Unresolvable, RecursionError, re.error):
        return []
    return [_told(error) for error in found]


def _validator(tool: Tool) -> Any:
    """Return the validator of a definition, made once; None where the schema says nothing that can be checked."""
    key = (tool.key, tool.fingerprint or json.dumps(tool.input_schema, sort_keys=True))
    if key not in _validators:
        if len(_validators) >= _MAX_VALIDATORS:
            _validators.clear()
        _validators[key] = _made(tool.input_schema)
    return _validators[key]


def _made(schema: Mapping[str, Any]) -> Any:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError
    from referencing import Registry

    if not schema:
        return None
    try:
        Draft202012Validator.check_schema(schema)
    except (SchemaError, RecursionError):
        return None
    # An empty registry: a `$ref` into the network is an error here, never a request.
    return Draft202012Validator(schema, registry=Registry())


def _told(error: Any) -> str:
    where = ".".join(str(part) for part in error.absolute_path)
    if error.validator == "required":
        missing = [name for name in error.validator_value if name not in error.instance]
        return f"{where + ': ' if where else ''}{', '.join(map(repr, missing))} is missing"
    if error.validator == "additionalProperties":
        known = ", ".join(error.schema.get("properties", {}))
        return f"{where + ': ' if where else ''}unknown parameter; it takes {known or 'none'}"
    if error.validator == "enum":
        return f"{where} must be one of {', '.join(map(repr, error.validator_value[:20]))}"
    if error.validator == "type":
        return f"{where or 'the arguments'} must be {error.validator_value}, not {_kind_of(error.instance)}"
    return f"{where or 'the arguments'}: {error.message[:200]}"
