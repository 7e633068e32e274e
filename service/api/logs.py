"""Structured logs: one line of JSON an event, without texts, keys or embeddings."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import MutableMapping
from typing import Any

import structlog

from service.api.request_ids import find_request_id
from service.settings import Settings

Event = MutableMapping[str, Any]
_DEEPEST = 12


def configure_logs(settings: Settings) -> None:
    """Send what the service and its server log to stderr, as JSON."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                _keep_template,
                structlog.stdlib.add_log_level,
                structlog.stdlib.add_logger_name,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                _add_request_id,
            ],
            processors=[
                _describe_failure,
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.processors.JSONRenderer(),
            ],
        )
    )
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.WARNING)
    for name in ("service", "uvicorn"):
        logging.getLogger(name).setLevel(settings.contextforge_log_level.upper())
    logging.getLogger("uvicorn.access").disabled = True


def log_event(logger: logging.Logger, event: str, **fields: object) -> None:
    """Log an event with its fields; none of them may be a text that somebody wrote."""
    logger.info(event, extra={"fields": fields})


def _keep_template(_: object, __: str, event: Event) -> Event:
    """Take the message without its arguments where they may be a question's words."""
    record: logging.LogRecord = event["_record"]
    if record.name.partition(".")[0] == "service":
        event["event"] = str(record.msg)
    event.update(getattr(record, "fields", {}))
    return event


def _add_request_id(_: object, __: str, event: Event) -> Event:
    request_id = find_request_id()
    if request_id is not None:
        event["request_id"] = request_id
    return event


def _describe_failure(_: object, __: str, event: Event) -> Event:
    """Name an exception and where it rose; its message may hold what a caller sent."""
    record: logging.LogRecord = event["_record"]
    given = record.exc_info
    event.pop("exc_info", None)
    if given and given[0] is not None:
        frames = traceback.extract_tb(given[2])[-_DEEPEST:]
        event["error"] = given[0].__name__
        event["frames"] = [f"{each.filename}:{each.lineno} {each.name}" for each in frames]
    return event
