"""Requests that Schemathesis generates from the description of the API never fail in the server."""

from typing import Any

import jsonschema
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis import Case
from schemathesis.config import SchemathesisConfig
from starlette.testclient import TestClient

from backscroll.web.api.openapi import API_PATH, openapi_document
from tests.web.conftest import ADDRESS

_MAX_EXAMPLES = 40  # of each operation
_schema = schemathesis.openapi.from_dict(openapi_document(), config=SchemathesisConfig())
_schema.config.update(base_url=ADDRESS + API_PATH)


@_schema.parametrize()
@settings(
    max_examples=_MAX_EXAMPLES,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_generated_requests_get_a_documented_response(case: Case, client: TestClient) -> None:
    request: dict[str, Any] = case.as_transport_kwargs()
    response = client.request(
        request["method"], request["url"], params=request["params"], headers=dict(request["headers"] or {})
    )
    assert response.status_code < 500, response.text
    if request["method"] != "GET":  # also generated
        assert response.status_code in (401, 405)
        return
    documented = case.operation.definition.raw["responses"]
    assert str(response.status_code) in documented or response.status_code == 404
    if response.status_code == 200:
        content = documented["200"]["content"]["application/json"]["schema"]
        schema = {**content, "components": openapi_document()["components"]}
        jsonschema.Draft202012Validator(schema).validate(response.json())
