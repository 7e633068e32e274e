"""Every knob of the service: its name, meaning, default and range, read in one place."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Annotated, Literal, Self, get_args
from urllib.parse import urlsplit

from dotenv.parser import parse_stream
from platformdirs import user_data_path
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from service.errors import SettingsError
from service.settings_guard import Suspect, find_suspects, judge_name
from service.types import Intent

_MASK = "***"
_POSTGRES_SCHEMES = ("postgresql", "postgres", "postgresql+psycopg")
_HOST_AND_PORT = re.compile(r"(?:\[[^\]]*\]|[^:\[\]]*)(?::(?P<port>[^:]*))?")
_SECRET_PARAMETER = re.compile(r"(?i)([?&](?:password|sslpassword)=)[^&]*")


@dataclass(frozen=True, slots=True)
class Expected:
    """What a right value looks like, in the words an error message uses."""

    text: str


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _split_list(value: object) -> object:
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


def _check_bonus(value: object) -> object:
    try:
        bonus = float(str(value))
    except ValueError:
        return value
    if bonus == 0 or 0.05 <= bonus <= 0.15:
        return bonus
    raise ValueError("out of range")


def _clean_postgres_url(value: object) -> object:
    text = value.get_secret_value() if isinstance(value, SecretStr) else value
    if not isinstance(text, str):
        return value
    scheme, separator, rest = text.strip().partition("://")
    if not separator or scheme.lower() not in _POSTGRES_SCHEMES:
        raise ValueError("not a PostgreSQL URL")
    hosts = re.split(r"[/?#]", rest, maxsplit=1)[0].rpartition("@")[2]
    for host in hosts.split(","):
        matched = _HOST_AND_PORT.fullmatch(host)
        if matched is None or not _is_port(matched["port"]):
            raise ValueError("impossible host or port")
    # One form for every reader: libpq knows no "+psycopg", SQLAlchemy knows no "postgres".
    return f"postgresql://{rest}"


def _is_port(text: str | None) -> bool:
    return not text or (text.isascii() and text.isdigit() and 1 <= int(text) <= 65535)


def _check_http_url(value: object) -> object:
    if not isinstance(value, str):
        return value
    parts = urlsplit(value.strip())
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ValueError("not a plain http URL")
    _ = parts.port  # raises ValueError when it is no port
    return value.strip().rstrip("/")


def _clean_path(value: object) -> object:
    if not isinstance(value, str | Path):
        return value
    try:
        return Path(value).expanduser().absolute()
    except RuntimeError as exc:
        raise ValueError("no such home directory") from exc


def _read_json(value: object) -> object:
    return json.loads(value) if isinstance(value, str) else value


def _check_pairs(weights: Mapping[Intent, tuple[float, float]]) -> Mapping[Intent, Weights]:
    if not all(any(pair) for pair in weights.values()):
        raise ValueError("both weights of an intent are 0")
    return weights


Share = Annotated[float, Field(ge=0, le=1), Expected("a number from 0 to 1")]
Weights = tuple[Share, Share]
Count = Annotated[int, Field(ge=1), Expected("a whole number, at least 1")]
Switch = Annotated[bool, Expected("on or off (1 or 0)")]
Name = Annotated[str, Field(min_length=1), Expected("a name")]
PostgresUrl = Annotated[
    SecretStr,
    BeforeValidator(_clean_postgres_url),
    Expected("a URL like postgresql://user:password@host:5432/database"),
]


def default_data_dir() -> Path:
    """Return where the embedded server keeps its data when nobody says otherwise."""
    if os.geteuid() == 0:
        return Path("/var/lib/contextforge")
    return user_data_path("contextforge", appauthor=False)


class Settings(BaseSettings):
    """Every setting of the service, immutable; build it from the environment by load_settings."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", hide_input_in_errors=True, str_strip_whitespace=True
    )

    context_token_budget: Count = Field(8000, description="Tokens a packed context may hold.")
    tokenizer_model: Name = Field(
        "gpt-4o-2024-11-20", description="Model whose tokenizer counts the tokens of a context."
    )
    packing_per_doc_cap: Count = Field(
        2, description="Sections of one document in a context (one more across documents)."
    )
    packing_per_section_cap: Count = Field(
        1, description="Pieces of one section in a context, unless the answer spans them."
    )
    packing_novelty_alpha: Share = Field(
        0.5, description="Weight of novelty against relevance when a context is packed."
    )
    packing_answerability_bonus: Annotated[
        float, BeforeValidator(_check_bonus), Expected("a number from 0.05 to 0.15, or 0 for none")
    ] = Field(0.1, description="Bonus for a section that looks like an answer; 0 switches it off.")
    section_reunification: Switch = Field(
        True, description="Join neighbouring pieces of one section in a context."
    )
    retrieval_k_base: Count = Field(
        12, description="Least number of fused nodes asked for before reranking."
    )
    hybrid_vector_weight: Share = Field(0.6, description="Weight of the vector leg in fusion.")
    hybrid_keyword_weight: Share = Field(
        0.4, description="Weight of the keyword (BM25) leg in fusion."
    )
    hybrid_fusion: Annotated[
        Literal["rrf", "convex"], BeforeValidator(_lower), Expected("rrf or convex")
    ] = Field("rrf", description="How both legs are fused: by ranks (rrf) or by scores (convex).")
    hybrid_rrf_k: Count = Field(60, description="Rank constant of rrf: larger flattens the ranks.")
    query_adaptive_weights: Switch = Field(
        True, description="Let a recognised intent choose its own weights and pool."
    )
    hybrid_intent_weights: Annotated[
        Mapping[Intent, Weights],
        BeforeValidator(_read_json),
        AfterValidator(_check_pairs),
        Expected(
            "a JSON object of intents with their keyword and vector weight, not both 0, like "
            '{"lookup": [0.8, 0.2]}; intents are ' + ", ".join(get_args(Intent))
        ),
    ] = Field({}, description="Keyword and vector weight by intent, before its preset; JSON.")
    graph_walk_weight: Share = Field(
        0.7, description="Weight of the walk along links in fusion; 0 switches it off."
    )
    graph_prior_weight: Share = Field(
        0.0, description="Weight of PageRank against the fused score; 0 leaves it out."
    )
    mmr_alpha: Share = Field(0.5, description="Relevance against diversity in the mmr reranker.")
    rerank_topk: Count = Field(12, description="Nodes kept after reranking.")
    reranker: Annotated[
        Literal["none", "mmr", "crossencoder"],
        BeforeValidator(_lower),
        Expected("one of none, mmr, crossencoder"),
    ] = Field("none", description="What reorders the fused nodes: none, mmr or crossencoder.")
    reranker_models: Name = Field(
        "ms-marco-MiniLM-L-12-v2",
        description="Cross-encoders that may be loaded, with commas between; the first is used.",
    )
    reranker_fallback: Annotated[
        Literal["none", "mmr"], BeforeValidator(_lower), Expected("none or mmr")
    ] = Field("none", description="What reorders instead of a cross-encoder that cannot be loaded.")
    retrieval_trace: Switch = Field(False, description="Record every step of a retrieval.")
    context_confidence_threshold: Share = Field(
        0.5, description="Best calibrated similarity below which no context is used."
    )
    content_quality_threshold: Share = Field(
        0.3, description="Quality below which a section is left out."
    )
    embedding_dim: Annotated[
        int, Field(ge=1, le=2000), Expected("a whole number from 1 to 2000")
    ] = Field(1024, description="Length of stored vectors, fixed by the first migration.")
    embedding_model: Name = Field(
        "all-MiniLM-L6-v2", description="Sentence-transformers model that embeds text."
    )
    synthesis_model: Name = Field(
        "claude-opus-4-6", description="Claude model that writes the answers."
    )
    synthesis_max_tokens: Count = Field(1024, description="Tokens an answer may have.")
    database_url: PostgresUrl | None = Field(
        None, description="Database of the service; without it the embedded server is used."
    )
    admin_database_url: PostgresUrl | None = Field(
        None, description="The same database for admin commands; automatic when embedded."
    )
    anthropic_api_key: Annotated[SecretStr, Expected("an API key")] | None = Field(
        None, description="Key for Claude; without it answers are extractive."
    )
    anthropic_base_url: (
        Annotated[
            str,
            BeforeValidator(_check_http_url),
            Expected("a URL like https://host[:port][/path], without user and password"),
        ]
        | None
    ) = Field(None, description="Where the Messages API is, if not at its public address.")
    contextforge_data_dir: Annotated[
        Path, BeforeValidator(_clean_path), Expected("the path of a directory")
    ] = Field(
        default_factory=default_data_dir, description="Directory of the embedded server's data."
    )
    contextforge_host: Name = Field("127.0.0.1", description="Address the service listens on.")
    contextforge_port: Annotated[int, Field(ge=1, le=65535), Expected("a port from 1 to 65535")] = (
        Field(8000, description="Port the service listens on.")
    )
    contextforge_api_key: Annotated[SecretStr, Expected("an API key")] | None = Field(
        None, description="Key that contextforge mcp speaks for over stdin and stdout."
    )
    contextforge_pool_size: Annotated[
        int, Field(ge=1, le=200), Expected("a whole number from 1 to 200")
    ] = Field(10, description="Database connections of one process of the service.")
    contextforge_rate_limit: Annotated[
        int, Field(ge=0, le=10_000_000), Expected("a whole number from 0 to 10000000")
    ] = Field(1200, description="Requests a minute that an API key may make; 0 for no limit.")
    contextforge_rate_burst: Count = Field(
        100, description="Requests an API key may make at once, after a pause."
    )
    contextforge_max_body_mb: Annotated[
        int, Field(ge=1, le=256), Expected("a whole number from 1 to 256")
    ] = Field(64, description="Largest body of a request that brings documents or nodes, in MiB.")
    contextforge_request_seconds: Annotated[
        float, Field(ge=31, le=600), Expected("a number from 31 to 600")
    ] = Field(60, description="Seconds a request may take; Claude has 30 of them.")
    contextforge_statement_seconds: Annotated[
        float, Field(ge=0.1, le=29), Expected("a number from 0.1 to 29")
    ] = Field(10, description="Seconds one statement of a request may take.")
    contextforge_trace_retention_days: Count = Field(
        30, description="Days a trace is kept before maintain forgets it."
    )
    contextforge_keep_questions: Switch = Field(
        True, description="Keep the words of questions as long as traces, to try changes on."
    )
    contextforge_feedback_per_hour: Count = Field(
        600, description="How often an hour one caller may give feedback."
    )
    ab_max_recall_drop: Share = Field(
        0.05, description="Drop of answer recall by feedback that ends an experiment."
    )
    ab_max_latency_rise: Annotated[float, Field(gt=0), Expected("a number above 0")] = Field(
        0.2, description="Rise of p95 latency, as a share of it, that ends an experiment."
    )
    ab_max_error_rise: Share = Field(
        0.01, description="Rise of the share of failed searches that ends an experiment."
    )
    ab_least_searches: Count = Field(
        100, description="Searches of each variant before an experiment can end by itself."
    )
    ab_searches_per_caller: Count = Field(
        200, description="Searches of one caller and variant that an experiment counts."
    )
    ab_check_seconds: Annotated[float, Field(ge=0), Expected("a number, at least 0")] = Field(
        30, description="Seconds between two looks at a running experiment, while it has traffic."
    )
    contextforge_audit_share: Share = Field(
        0.01, description="Share of searches through the ANN index that are repeated exactly."
    )
    contextforge_audit_least_recall: Share = Field(
        0.95, description="Recall of audits below which a warning is logged."
    )
    contextforge_metrics_token: Annotated[SecretStr, Expected("a token")] | None = Field(
        None, description="Token that reads /metrics; without it only this machine may."
    )
    contextforge_job_retention_days: Count = Field(
        14, description="Days an ended job can be asked about before maintain forgets it."
    )
    contextforge_allow_urls: Switch = Field(
        False, description="Let ingest fetch pages from the public internet."
    )
    contextforge_url_ports: Annotated[
        tuple[Annotated[int, Field(ge=1, le=65535)], ...],
        BeforeValidator(_split_list),
        Field(min_length=1),
        Expected("ports from 1 to 65535, with commas between"),
    ] = Field((80, 443), description="Ports pages may be fetched from, with commas between.")
    contextforge_log_level: Annotated[
        Literal["debug", "info", "warning", "error", "critical"],
        BeforeValidator(_lower),
        Expected("one of debug, info, warning, error, critical"),
    ] = Field("info", description="Least severity that is logged.")

    @model_validator(mode="after")
    def _check_weights(self) -> Self:
        if self.hybrid_vector_weight == 0 and self.hybrid_keyword_weight == 0:
            raise ValueError("HYBRID_VECTOR_WEIGHT and HYBRID_KEYWORD_WEIGHT must not both be 0")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        # The environment is read by load_settings alone: Settings(...) in code depends on nothing.
        return (init_settings,)


@dataclass(frozen=True, slots=True)
class SettingView:
    """One setting as it is shown to a person: secrets masked, with where its value came from."""

    name: str
    value: str
    default: str
    description: str
    source: Literal["default", "set"]


@dataclass(frozen=True, slots=True)
class _Given:
    """A variable as it was found, and where."""

    name: str
    value: str
    place: str


def load_settings(
    environ: Mapping[str, str] | None = None, env_file: Path | None = Path(".env")
) -> Settings:
    """Read the environment over the `.env` file; SettingsError names whatever cannot be right."""
    variables = os.environ if environ is None else environ
    given = [] if env_file is None else _read_env_file(env_file)
    given += [_Given(name, value, "the environment") for name, value in variables.items()]
    given = [each for each in given if each.value.strip()]
    _refuse_suspects(given)
    # An exact upper-case name outranks another spelling of it in the same place.
    given.sort(key=lambda each: (each.place == "the environment", each.name.isupper()))
    known = {each.name.upper(): each for each in given if each.name.upper() in _names()}
    try:
        return Settings.model_validate({name.lower(): each.value for name, each in known.items()})
    except ValidationError as exc:
        raise SettingsError(_explain_errors(exc, known)) from exc


def override_settings(settings: Settings, values: Mapping[str, object], *, place: str) -> Settings:
    """Return the settings with other values, by field name; SettingsError names what is wrong."""
    given = {
        name.upper(): _Given(name, str(value), place)
        for name, value in {**dict(settings), **values}.items()
    }
    try:
        return Settings.model_validate({**dict(settings), **values})
    except ValidationError as exc:
        raise SettingsError(_explain_errors(exc, given)) from exc


def describe_settings(settings: Settings) -> list[SettingView]:
    """Return every setting in documented order, ready to print."""
    return [
        SettingView(
            name=name.upper(),
            value=_show(getattr(settings, name)),
            default=_show(field.get_default(call_default_factory=True, validated_data={})),
            description=field.description or "",
            source="set" if name in settings.model_fields_set else "default",
        )
        for name, field in Settings.model_fields.items()
    ]


def _names() -> frozenset[str]:
    return frozenset(name.upper() for name in Settings.model_fields)


def _read_env_file(path: Path) -> list[_Given]:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as exc:
        raise SettingsError(f"{path} cannot be read: {exc}.") from exc
    given = []
    for binding in parse_stream(StringIO(text)):
        if binding.error:
            _refuse_broken_line(binding.original.string, f"line {binding.original.line} of {path}")
        elif binding.key is not None:
            given.append(_Given(binding.key, binding.value or "", str(path)))
    return given


def _refuse_broken_line(text: str, place: str) -> None:
    matched = re.match(r"\s*(?:export\s+)?(\w+)", text)
    name = matched[1] if matched else ""
    if name.upper() in _names() or judge_name(name, _names()) is not None:
        raise SettingsError(f"{name}, {place}, must be written as {name.upper()}=value.")


def _refuse_suspects(given: list[_Given]) -> None:
    places = {each.name: each.place for each in given}
    suspects = find_suspects(places, _names())
    if suspects:
        raise SettingsError(
            " ".join(_explain_suspect(each, places[each.name]) for each in suspects),
            hint="A variable of another program must be unset for this one.",
        )


def _explain_suspect(suspect: Suspect, place: str) -> str:
    meant = f"; did you mean {' or '.join(suspect.meant)}?" if suspect.meant else "."
    return f"{suspect.name} in {place} is not a setting{meant}"


def _explain_errors(exc: ValidationError, known: Mapping[str, _Given]) -> str:
    messages = []
    for error in exc.errors(include_url=False, include_input=False):
        if error["loc"]:
            name = str(error["loc"][0])
            messages.append(_explain_value(known[name.upper()], Settings.model_fields[name]))
        else:
            messages.append(f"{error['msg'].removeprefix('Value error, ')}.")
    return " ".join(messages)


def _explain_value(given: _Given, field: FieldInfo) -> str:
    shown = "" if "SecretStr" in str(field.annotation) else f", not {given.value[:80]!r}"
    return f"{given.name.upper()} in {given.place} must be {_expected(field)}{shown}."


def _expected(field: FieldInfo) -> str:
    choices = getattr(field.annotation, "__args__", ())
    nested = [item for choice in choices for item in getattr(choice, "__metadata__", ())]
    return next(item.text for item in [*field.metadata, *nested] if isinstance(item, Expected))


def _show(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, SecretStr):
        return _mask(value.get_secret_value())
    if isinstance(value, tuple):
        return ",".join(map(str, value))
    if isinstance(value, dict):
        return json.dumps(value) if value else ""
    return str(value)


def _mask(secret: str) -> str:
    scheme, separator, rest = secret.partition("://")
    if not separator:
        return _MASK
    login, at, address = rest.rpartition("@")
    user, colon, _ = login.partition(":")
    masked = f"{scheme}://{user}{colon and ':' + _MASK}{at}{address}"
    return _SECRET_PARAMETER.sub(rf"\g<1>{_MASK}", masked)
