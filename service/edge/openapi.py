"""The OpenAPI document, made from the same declarations that validate requests."""

import re
from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel

from service.edge.operations import Nothing, Operation
from service.version import VERSION

REFERENCE = "#/components/schemas/{model}"
ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "required": ["code", "message"],
            "properties": {name: {"type": "string"} for name in ("code", "message", "field")},
        }
    },
}
ERROR_ANSWER = {
    "description": "what is wrong and what to do",
    "content": {"application/json": {"schema": {"$ref": REFERENCE.format(model="Error")}}},
}

Json = dict[str, Any]


def document(operations: Iterable[Operation[Any, Any]]) -> Json:
    schemas: Json = {"Error": ERROR}
    paths: Json = {}
    for operation in operations:
        paths.setdefault(operation.path, {})[operation.method.lower()] = _described(operation, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Gapless",
            "version": VERSION,
            "description": "Durable memory for coding agents. Times are integer milliseconds since the epoch.",
        },
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def input_schema(model: type[BaseModel]) -> Json:
    """What an MCP tool takes: the model by itself, without what a model has no use for."""
    schema = model.model_json_schema()
    for name, described in schema["properties"].items():
        described.pop("title", None)
        schema["properties"][name] = _without_null(described)
    return {name: value for name, value in schema.items() if name not in ("title", "description")}


def _described(operation: Operation[Any, Any], schemas: Json) -> Json:
    described: Json = {
        "operationId": operation.answer.__name__,
        "summary": operation.summary,
        "security": [] if operation.public else [{"token": []}],
        "parameters": [*_in_path(operation.path), *_in_query(operation.query, schemas)],
        "responses": {str(status): _answer(operation, status) for status in operation.successes}
        | {"4XX": ERROR_ANSWER, "503": ERROR_ANSWER},
    }
    if operation.takes_body:
        schema = _schema(operation.body, schemas)
        described["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return described


def _answer(operation: Operation[Any, Any], status: int) -> Json:
    if status == 204:  # noqa: PLR2004 - No Content
        return {"description": "done"}
    return {"description": operation.summary, "content": {operation.media_type: {}}}


def _in_path(path: str) -> list[Json]:
    schema = {"type": "integer", "minimum": 1, "maximum": 2**63 - 1}
    return [{"name": name, "in": "path", "required": True, "schema": schema} for name in re.findall(r"{(\w+)}", path)]


def _in_query(model: type[BaseModel], schemas: Json) -> list[Json]:
    if model is Nothing:
        return []
    schema = _schema(model, schemas)
    required = schema.get("required", [])
    return [
        {"name": name, "in": "query", "required": name in required, "schema": _without_null(described)}
        for name, described in schema["properties"].items()
    ]


def _schema(model: type[BaseModel], schemas: Json) -> Json:
    schema = model.model_json_schema(ref_template=REFERENCE)
    schemas.update(schema.pop("$defs", {}))
    return schema


def _without_null(schema: Json) -> Json:
    """What may be absent is simply left out: a query string has no null."""
    kept = {name: value for name, value in schema.items() if not (name == "default" and value is None)}
    if (choices := kept.pop("anyOf", None)) is None:
        return kept
    choices = [choice for choice in choices if choice != {"type": "null"}]
    return kept | (choices[0] if len(choices) == 1 else {"anyOf": choices})
