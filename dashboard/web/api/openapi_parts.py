"""What the OpenAPI document is made of."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]


def text(what: str, **more: object) -> Schema:
    """A string, described."""
    return {"type": "string", "description": what, **more}


def maybe(schema: Schema) -> Schema:
    """The schema, or null."""
    return {**schema, "type": [schema["type"], "null"]}


def record(required: tuple[str, ...] = (), **properties: Schema) -> Schema:
    """An object; ``required`` names members."""
    return {"type": "object", "required": list(required), "properties": properties}


def ref(name: str) -> Schema:
    """A named schema."""
    return {"$ref": f"#/components/schemas/{name}"}


def as_json(schema: Schema, kind: str = "application/json") -> Schema:
    """The schema as a body of this kind."""
    return {kind: {"schema": schema}}


def answer(what: str, schema: Schema, kind: str = "application/json", **headers: str) -> Schema:
    """A response with a body; underscores in the names of headers stand for hyphens."""
    told = {
        name.replace("_", "-"): {"description": words, "schema": {"type": "string"}} for name, words in headers.items()
    }
    return {"description": what, "content": as_json(schema, kind), **({"headers": told} if told else {})}


def problem(what: str, **headers: str) -> Schema:
    """A problem document."""
    return answer(what, ref("Problem"), "application/problem+json", **headers)


TIME = {"type": "string", "format": "date-time"}

ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string", "format": "uuid"}}

COMMON = {
    "401": problem("No valid token.", WWW_Authenticate="What is asked for."),
    "500": problem("A fault of ours, which is noted."),
    "503": problem("The database is away.", Retry_After="Seconds."),
}
TAKEN = {
    "400": problem("A field cannot be taken."),
    "413": problem("Too large."),
    "415": problem("Another kind of body."),
}


def number(what: str) -> Schema:
    """A whole number, described."""
    return {"type": "integer", "minimum": 0, "description": what}


def time(what: str) -> Schema:
    """A time, described."""
    return {**TIME, "description": what}


def whole(**members: Schema) -> Schema:
    """An object that has all of these members."""
    return record(tuple(members), **members)


def query(name: str, what: str) -> dict[str, Any]:
    """A parameter of the query that may be left out."""
    return {"name": name, "in": "query", "required": False, "description": what, "schema": {"type": "string"}}


AFTER = query("after", "`next` of the page before.")
MINE = {**COMMON, "403": problem("The token acts for nobody who may do this.")}
MISSING = problem("There is none of this id.")
REFUSED = problem("It was not done; `detail` says why.")


def operation(name: str, summary: str, responses: Schema, **more: Any) -> Schema:
    """A route that needs a token which acts for an operator."""
    return {"operationId": name, "summary": summary, **more, "responses": {**responses, **MINE}}


def body(schema: str) -> Schema:
    """A body of this schema."""
    return {"required": True, "content": as_json(ref(schema))}


ONLY_REASON = body("Reason")
