"""Schemathesis over the OpenAPI document: no failure, and no answer that it does not describe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tests.api.conftest import MakeKey, app_for
from tests.api.test_access import ENDPOINTS
from tests.api.test_robust import store
from tests.conftest import MakeTenant
from tests.live_database import LiveDatabase
from tests.running_app import run_app

EXAMPLES = 20
CHECKS = (
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
)


@pytest.fixture
def service(
    database: LiveDatabase, make_tenant: MakeTenant, make_key: MakeKey
) -> Iterator[tuple[str, str]]:
    """The address of a service with a few documents, and a key for it."""
    key = make_key(make_tenant("acme"))
    with run_app(app_for(database, contextforge_rate_limit=0)) as url:
        store(url, key)
        yield url, key


@pytest.mark.slow
def test_every_endpoint_keeps_to_its_document(service: tuple[str, str]):
    url, key = service
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json")
    tried = []
    answered: Counter[tuple[str, int]] = Counter()
    for found in schema.get_all_operations():
        operation: Any = found.ok()  # type: ignore[union-attr]
        modes = [GenerationMode.POSITIVE]
        if operation.path.startswith("/v1/"):  # the others take nothing that could be wrong
            modes.append(GenerationMode.NEGATIVE)
            tried.append(operation.label)
        for mode in modes:

            @seed(7)
            @settings(
                max_examples=EXAMPLES,
                deadline=None,
                database=None,
                phases=[Phase.explicit, Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(generation_mode=mode))
            def call_and_check(case: Any) -> None:
                response = case.call(headers={"Authorization": f"Bearer {key}"}, timeout=30)
                case.validate_response(response, checks=list(CHECKS))
                answered.update([(case.operation.label, response.status_code // 100)])

            call_and_check()
    assert len(tried) == len(ENDPOINTS)
    # What only ever refuses proves little: these need no id that exists.
    for label in ("POST /v1/search", "POST /v1/context", "POST /v1/answer", "GET /v1/nodes"):
        assert answered[label, 2] > 0
        assert answered[label, 4] > 0
