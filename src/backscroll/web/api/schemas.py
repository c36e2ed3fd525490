"""JSON schemas of the documents."""

from typing import Any, get_args

from backscroll.model import Completeness, Decision, Role, Status, TimeSource

__all__ = ["SCHEMAS", "reference"]


def reference(name: str) -> dict[str, str]:
    """Return a reference to a schema of this module."""
    return {"$ref": f"#/components/schemas/{name}"}


def _type(name: str) -> dict[str, Any]:
    """Return the schema of a short name: ``integer``, ``string?`` (or null), ``[string]`` (a list)."""
    if name.endswith("?"):
        inner = _type(name[:-1])
        if "type" in inner:
            return {**inner, "type": [inner["type"], "null"]}
        return {"anyOf": [inner, {"type": "null"}]}
    if name.startswith("["):
        return {"type": "array", "items": _type(name[1:-1])}
    if name == "time":
        return {"type": "string", "format": "date-time"}
    if name[0].isupper():
        return reference(name)
    return {"type": name} if name != "any" else {}


def _object(**properties: str | dict[str, Any]) -> dict[str, Any]:
    typed = {name: value if isinstance(value, dict) else _type(value) for name, value in properties.items()}
    return {"type": "object", "properties": typed, "required": list(typed)}


def _enum(type_: Any, *, is_nullable: bool = False) -> dict[str, Any]:
    return {"enum": [*get_args(type_), *([None] if is_nullable else [])]}


def _page(item: str, **more: str) -> dict[str, Any]:
    return _object(data=f"[{item}]", pagination="Pagination", **more, is_complete="boolean")


SCHEMAS: dict[str, dict[str, Any]] = {
    "Pagination": {
        "type": "object",
        "properties": {
            "total": _type("integer?"),
            "total_at_least": _type("integer?"),
            "limit": _type("integer"),
            "offset": _type("integer"),
            "has_more": _type("boolean"),
        },
        "required": ["total", "limit", "offset", "has_more"],
    },
    "Error": _object(error=_object(status="integer", message="string")),
    "Note": _object(number="integer", text="string", written_at="time", edited_at="time?"),
    "Summary": _object(
        ref="string", id="string", index="integer?", source="string", platform="string", title="string?",
        workspace_path="string?", workspace_name="string?", message_count="integer", created_at="time?",
        updated_at="time?", first_message_preview="string?", git_branch="string?", models="[string]",
        version="string?", agent_ids="[string]", parent_ref="string?", interaction_count="integer",
        acceptance_rate="number?", total_tokens="integer?", total_changes="integer",
        completeness=_enum(Completeness), is_gone="boolean", tags="[string]", is_starred="boolean",
        notes="[Note]", original_title="string?",
    ),
    "Usage": _object(
        input_tokens="integer?", output_tokens="integer?", cache_creation_input_tokens="integer?",
        cache_read_input_tokens="integer?",
    ),
    "Message": _object(
        id="string", position="integer", role=_enum(Role), kind="string?", content="string",
        timestamp="time?",
        timestamp_source=_enum(TimeSource, is_nullable=True), model="string?", parent_id="string?",
        response_id="string?", agent_id="string?", is_active="boolean", tool_call_id="string?",
        tool_name="string?", tool_params="object?", tool_result="string?",
        status=_enum(Status, is_nullable=True), decision=_enum(Decision, is_nullable=True),
        attachments="[object]", cwd="string?", git_branch="string?", stop_reason="string?",
        is_sidechain="boolean", copied_from="string?", usage="Usage?",
        origin=_object(path="string", place="string"),
    ),
    "Match": _object(
        session_ref="string", session_id="string", session_index="integer?", source="string", title="string?",
        workspace_name="string?", message_id="string", message_index="integer", role=_enum(Role),
        timestamp="time?", match="string", highlights="[array]", context="[string]", line_number="integer",
        score="number", match_count="integer", parent_ref="string?", matches_all="boolean",
        also="object?", ranks="object?", is_note="boolean", is_title="boolean",
    ),
    "FacetValue": _object(value="string", label="string", count="integer"),
    "Facets": _object(
        sources="[FacetValue]", workspaces="[FacetValue]", branches="[FacetValue]", models="[FacetValue]",
        tags="[FacetValue]", edited="integer", gone="integer", starred="integer", is_complete="boolean",
    ),
    "SearchFacets": _object(
        total="integer", sources="[FacetValue]", workspaces="[FacetValue]", roles="[FacetValue]",
        kinds="[FacetValue]", models="[FacetValue]", dates="[FacetValue]", is_partial="boolean",
        is_complete="boolean",
    ),
    "Workspace": _object(
        path="string", name="string?", host="string?", session_count="integer", updated_at="time?"
    ),
    "SessionPage": _page("Summary"),
    "MessagePage": _page("Message"),
    "MatchPage": _page("Match", took_ms="number", is_relaxed="boolean"),
    "WorkspaceList": _object(data="[Workspace]", is_complete="boolean"),
    "Session": {
        "allOf": [reference("Summary"), _object(reported_cost_usd="number?", is_complete="boolean")]
    },
    "Report": {
        **_object(total="object", data="[object]", is_complete="boolean"),
        "description": "The document of 'backscroll stats --json'.",
    },
    "Status": _object(
        is_complete="boolean", is_running="boolean", percent="integer?", remaining_seconds="number?"
    ),
}  # fmt: skip
