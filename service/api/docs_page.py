"""The OpenAPI document as one page to read, which asks nobody outside for anything."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

_STYLE = """
:root { color-scheme: light dark; --line: color-mix(in srgb, currentColor 20%, transparent); }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 0 auto; padding: 1rem; }
code, pre { font: 13px/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid var(--line); border-radius: .4rem; }
details { border-top: 1px solid var(--line); padding: .5rem 0; }
summary { cursor: pointer; }
table { border-collapse: collapse; width: 100%; display: block; overflow-x: auto; }
td, th { border-top: 1px solid var(--line); padding: .3rem .6rem .3rem 0; text-align: left;
  vertical-align: top; }
.method { display: inline-block; min-width: 4.5em; font-weight: 600; }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
_DEEPEST = 6


def render_docs(document: Mapping[str, Any]) -> str:
    """Return the page."""
    info = document["info"]
    title = f"{escape(info['title'])} {escape(info['version'])}"
    body = "".join(_render_paths(document))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}: HTTP API</title><style>{_STYLE}</style></head><body><main>"
        f"<h1>{title}</h1><p>{escape(info.get('description', ''))}</p>"
        '<p>The same for programs: <a href="/openapi.json">/openapi.json</a>.</p>'
        f"{body}</main></body></html>"
    )


def _render_paths(document: Mapping[str, Any]) -> Iterator[str]:
    tags: dict[str, list[str]] = {}
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            shown = _render_operation(document, f"{method.upper()} {path}", operation)
            tags.setdefault(operation.get("tags", ["other"])[0], []).append(shown)
    for tag, group in tags.items():
        yield f"<h2>{escape(tag.capitalize())}</h2>{''.join(group)}"


def _render_operation(document: Mapping[str, Any], name: str, operation: Mapping[str, Any]) -> str:
    method, _, path = name.partition(" ")
    text = operation.get("description") or operation.get("summary", "")
    parts = [
        f"<p>{escape(text)}</p>",
        _render_parameters(operation.get("parameters", ())),
        *_render_contents(document, "Body", operation.get("requestBody", {})),
    ]
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            parts += _render_contents(document, f"Answer {status}", response)
    problems = [
        f"{status} {response['description']}"
        for status, response in operation["responses"].items()
        if not status.startswith("2")
    ]
    parts += [f"<p>Problems: {escape(' '.join(problems))}</p>"] if problems else []
    first = text.partition("\n")[0]
    return (
        f'<details><summary><code class="method">{method}</code><code>{escape(path)}</code> '
        f"{escape(first)}</summary>{''.join(parts)}</details>"
    )


def _render_parameters(parameters: Any) -> str:
    if not parameters:
        return ""
    rows = "".join(
        f"<tr><td><code>{escape(each['name'])}</code></td><td>{escape(each['in'])}</td>"
        f"<td>{escape(_name_type(each.get('schema', {})))}"
        f"{', required' if each.get('required') else ''}</td>"
        f"<td>{escape(each.get('description', ''))}</td></tr>"
        for each in parameters
    )
    return f"<table><tr><th>Parameter</th><th>In</th><th>Type</th><th></th></tr>{rows}</table>"


def _render_contents(
    document: Mapping[str, Any], title: str, holder: Mapping[str, Any]
) -> Iterator[str]:
    for media_type, content in holder.get("content", {}).items():
        schema = _resolve(document, content.get("schema", {}))
        yield f"<h3>{escape(title)}: <code>{escape(media_type)}</code></h3>"
        yield _render_fields(schema)
        example = json.dumps(_make_example(document, schema), indent=2, ensure_ascii=False)
        yield f"<pre>{escape(example)}</pre>"


def _render_fields(schema: Mapping[str, Any]) -> str:
    required = schema.get("required", ())
    rows = "".join(
        f"<tr><td><code>{escape(name)}</code></td>"
        f"<td>{escape(_name_type(field))}{', required' if name in required else ''}</td>"
        f"<td>{escape(field.get('description', ''))}</td></tr>"
        for name, field in schema.get("properties", {}).items()
    )
    return f"<table><tr><th>Field</th><th>Type</th><th></th></tr>{rows}</table>" if rows else ""


def _name_type(schema: Mapping[str, Any]) -> str:
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "anyOf" in schema:
        return " or ".join(_name_type(each) for each in schema["anyOf"])
    if "enum" in schema:
        return " or ".join(map(str, schema["enum"]))
    kind = str(schema.get("type", "any"))
    if kind == "array":
        return f"list of {_name_type(schema.get('items', {}))}"
    limits = (schema.get("minimum"), schema.get("maximum"))
    return kind if None in limits else f"{kind} {limits[0]:g} to {limits[1]:g}"


def _resolve(document: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    while "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def _make_example(document: Mapping[str, Any], schema: Mapping[str, Any], depth: int = 0) -> Any:
    """Return a value that fits a schema, of the examples it gives."""
    schema = _resolve(document, schema)
    for stated in (schema.get("examples"), schema.get("enum")):
        if stated:
            return stated[0]
    if "default" in schema:
        return schema["default"]
    if "anyOf" in schema:
        return _make_example(document, schema["anyOf"][0], depth)
    if schema.get("type") == "array":
        return [] if depth > _DEEPEST else [_make_example(document, schema["items"], depth + 1)]
    if "properties" in schema and depth <= _DEEPEST:
        return {
            name: _make_example(document, field, depth + 1)
            for name, field in schema["properties"].items()
        }
    plain = {"string": "", "integer": 0, "number": 0.0, "boolean": False, "object": {}}
    return plain.get(str(schema.get("type")))
