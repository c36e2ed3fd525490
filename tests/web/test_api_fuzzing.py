"""Requests that Schemathesis generates from the description of the API never fail in the server."""

from functools import cache
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from starlette.testclient import TestClient

from backscroll.web.api import API_PATH, openapi_document
from tests.web.conftest import ADDRESS

if TYPE_CHECKING:
    from schemathesis import Case
    from schemathesis.schemas import BaseSchema


@cache
def api_schema() -> "BaseSchema":
    import schemathesis  # takes half a second
    from schemathesis.config import SchemathesisConfig

    schema = schemathesis.openapi.from_dict(openapi_document(), config=SchemathesisConfig())
    schema.config.update(base_url=ADDRESS + API_PATH)
    return schema


@pytest.mark.hypothesis
@pytest.mark.parametrize("path", openapi_document()["paths"])
def test_generated_requests_get_a_documented_response(path: str, client: TestClient) -> None:
    from schemathesis import GenerationMode

    operation = api_schema()[path]["GET"]
    valid, invalid = (
        operation.as_strategy(generation_mode=mode)
        for mode in (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
    )

    @settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
    @given(case=valid | invalid)
    def check(case: "Case") -> None:
        check_response(case, client)

    check()


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize("path", openapi_document()["paths"])
def test_another_method_is_refused(path: str, method: str, client: TestClient) -> None:
    response = client.request(method, f"{ADDRESS}{API_PATH}{path.format(ref='1')}")
    assert response.status_code in (401, 405)


def check_response(case: "Case", client: TestClient) -> None:
    request: dict[str, Any] = case.as_transport_kwargs()
    response = client.request(
        request["method"], request["url"], params=request["params"], headers=dict(request["headers"] or {})
    )
    assert response.status_code < 500, response.text
    documented = case.operation.definition.raw["responses"]
    assert str(response.status_code) in documented or response.status_code == 404
    if response.status_code == 200:
        content = documented["200"]["content"]["application/json"]["schema"]
        schema = {**content, "components": openapi_document()["components"]}
        jsonschema.Draft202012Validator(schema).validate(response.json())
