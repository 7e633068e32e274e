"""Settings: defaults, ranges, secrets, `.env`, and the refusal of misspelt names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from service.errors import SettingsError
from service.settings import Settings, describe_settings, load_settings
from service.settings_guard import edit_distance, find_suspects

CONTRACT = {
    "CONTEXT_TOKEN_BUDGET": 8000,
    "TOKENIZER_MODEL": "gpt-4o-2024-11-20",
    "PACKING_PER_DOC_CAP": 2,
    "PACKING_PER_SECTION_CAP": 1,
    "PACKING_NOVELTY_ALPHA": 0.5,
    "PACKING_ANSWERABILITY_BONUS": 0.1,
    "SECTION_REUNIFICATION": True,
    "RETRIEVAL_K_BASE": 12,
    "HYBRID_VECTOR_WEIGHT": 0.6,
    "HYBRID_KEYWORD_WEIGHT": 0.4,
    "HYBRID_FUSION": "rrf",
    "HYBRID_RRF_K": 60,
    "QUERY_ADAPTIVE_WEIGHTS": True,
    "HYBRID_INTENT_WEIGHTS": {},
    "GRAPH_WALK_WEIGHT": 0.7,
    "GRAPH_PRIOR_WEIGHT": 0.0,
    "MMR_ALPHA": 0.5,
    "RERANK_TOPK": 12,
    "RERANKER": "none",
    "RERANKER_MODELS": "ms-marco-MiniLM-L-12-v2",
    "RERANKER_FALLBACK": "none",
    "RETRIEVAL_TRACE": False,
    "CONTEXT_CONFIDENCE_THRESHOLD": 0.5,
    "CONTENT_QUALITY_THRESHOLD": 0.3,
    "EMBEDDING_DIM": 1024,
    "EMBEDDING_MODEL": "all-MiniLM-L6-v2",
    "SYNTHESIS_MODEL": "claude-opus-4-6",
    "SYNTHESIS_MAX_TOKENS": 1024,
    "DATABASE_URL": None,
    "ADMIN_DATABASE_URL": None,
    "ANTHROPIC_API_KEY": None,
    "CONTEXTFORGE_API_KEY": None,
    "ANTHROPIC_BASE_URL": None,
    "CONTEXTFORGE_HOST": "127.0.0.1",
    "CONTEXTFORGE_PORT": 8000,
    "CONTEXTFORGE_ALLOW_URLS": False,
    "CONTEXTFORGE_JOB_RETENTION_DAYS": 14,
    "CONTEXTFORGE_TRACE_RETENTION_DAYS": 30,
    "CONTEXTFORGE_AUDIT_SHARE": 0.01,
    "CONTEXTFORGE_AUDIT_LEAST_RECALL": 0.95,
    "CONTEXTFORGE_METRICS_TOKEN": None,
    "CONTEXTFORGE_STATEMENT_SECONDS": 10,
    "CONTEXTFORGE_REQUEST_SECONDS": 60,
    "CONTEXTFORGE_MAX_BODY_MB": 64,
    "CONTEXTFORGE_KEEP_QUESTIONS": True,
    "CONTEXTFORGE_FEEDBACK_PER_HOUR": 600,
    "AB_MAX_RECALL_DROP": 0.05,
    "AB_MAX_LATENCY_RISE": 0.2,
    "AB_MAX_ERROR_RISE": 0.01,
    "AB_LEAST_SEARCHES": 100,
    "AB_SEARCHES_PER_CALLER": 200,
    "AB_CHECK_SECONDS": 30,
    "CONTEXTFORGE_RATE_BURST": 100,
    "CONTEXTFORGE_RATE_LIMIT": 1200,
    "CONTEXTFORGE_POOL_SIZE": 10,
    "CONTEXTFORGE_URL_PORTS": (80, 443),
    "CONTEXTFORGE_LOG_LEVEL": "info",
}
FOREIGN = [
    "PATH",
    "HOME",
    "LANG",
    "DATABASE_HOST",
    "DATABASE_PORT",
    "DATABASE_USER",
    "DATABASE_NAME",
    "DATABASE_PASSWORD",
    "ANTHROPIC_MODEL",
    "ANTHROPIC_AUTH_TOKEN",
    "EMBEDDING_PROVIDER",
    "EMBEDDING_BATCH_SIZE",
    "TOKENIZERS_PARALLELISM",
    "CONTEXT",
    "CONTENT_TYPE",
    "QUERY_STRING",
    "PGHOST",
    "TEST_DATABASE_URL",
]


def load(**variables: str) -> Settings:
    return load_settings(variables, None)


def shown(settings: Settings, name: str) -> str:
    return next(view.value for view in describe_settings(settings) if view.name == name)


def test_every_documented_setting_has_its_documented_default() -> None:
    settings = load()
    assert {name: getattr(settings, name.lower()) for name in CONTRACT} == CONTRACT


def test_only_documented_settings_exist() -> None:
    assert {name.upper() for name in Settings.model_fields} == {*CONTRACT, "CONTEXTFORGE_DATA_DIR"}


def test_root_keeps_its_data_in_the_system_directory_and_others_in_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert load().contextforge_data_dir == Path("/var/lib/contextforge")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("XDG_DATA_HOME", "/home/somebody/data")
    assert load().contextforge_data_dir == Path("/home/somebody/data/contextforge")


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError, match="frozen"):
        setattr(load(), "embedding_dim", 3)  # noqa: B010 - the type checker refuses it, too


def test_settings_built_in_code_do_not_read_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EMBEDDING_DIM", "7")
    assert Settings().embedding_dim == 1024
    assert load_settings(env_file=None).embedding_dim == 7


@pytest.mark.parametrize(
    ("text", "value"), [("on", True), ("off", False), ("1", True), ("0", False), ("ON", True)]
)
def test_switches_are_written_as_on_off_or_one_zero(text: str, value: bool) -> None:
    assert load(RETRIEVAL_TRACE=text).retrieval_trace is value


def test_names_are_read_in_any_case_and_the_upper_one_wins() -> None:
    assert load(embedding_dim="5").embedding_dim == 5
    assert load(EMBEDDING_DIM="6", embedding_dim="5").embedding_dim == 6


def test_an_empty_value_is_no_value(tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text("EMBEDDING_DIM=9\nPACKING_TYPO=\n")
    assert load_settings({"EMBEDDING_DIM": " "}, env_file).embedding_dim == 9


@pytest.mark.parametrize(
    ("name", "value", "right"),
    [
        ("EMBEDDING_DIM", "0", "from 1 to 2000"),
        ("EMBEDDING_DIM", "2001", "from 1 to 2000"),
        ("EMBEDDING_DIM", "many", "from 1 to 2000"),
        ("PACKING_PER_DOC_CAP", "0", "at least 1"),
        ("CONTEXT_TOKEN_BUDGET", "-1", "at least 1"),
        ("HYBRID_VECTOR_WEIGHT", "1.1", "from 0 to 1"),
        ("MMR_ALPHA", "nan", "from 0 to 1"),
        ("HYBRID_INTENT_WEIGHTS", "lookup", "a JSON object of intents"),
        ("HYBRID_INTENT_WEIGHTS", '{"lokup": [1, 0]}', "intents are definition, measurement"),
        ("HYBRID_INTENT_WEIGHTS", '{"lookup": [1.1, 0]}', '{"lookup": [0.8, 0.2]}'),
        ("HYBRID_INTENT_WEIGHTS", '{"lookup": [1]}', '{"lookup": [0.8, 0.2]}'),
        ("HYBRID_INTENT_WEIGHTS", '{"lookup": [0, 0]}', "not both 0"),
        ("CONTEXT_CONFIDENCE_THRESHOLD", "-0.1", "from 0 to 1"),
        ("PACKING_ANSWERABILITY_BONUS", "0.04", "0.05 to 0.15, or 0"),
        ("PACKING_ANSWERABILITY_BONUS", "0.2", "0.05 to 0.15, or 0"),
        ("PACKING_ANSWERABILITY_BONUS", "some", "0.05 to 0.15, or 0"),
        ("SECTION_REUNIFICATION", "maybe", "on or off"),
        ("RERANKER", "best", "none, mmr, crossencoder"),
        ("CONTEXTFORGE_PORT", "70000", "1 to 65535"),
        ("CONTEXTFORGE_URL_PORTS", "80,http", "1 to 65535"),
        ("CONTEXTFORGE_URL_PORTS", "0", "1 to 65535"),
        ("CONTEXTFORGE_URL_PORTS", ",", "1 to 65535"),
        ("CONTEXTFORGE_LOG_LEVEL", "loud", "debug, info"),
        ("CONTEXTFORGE_DATA_DIR", "~nobody-of-this-name/x", "a directory"),
        ("ANTHROPIC_BASE_URL", "ftp://host", "https://"),
        ("ANTHROPIC_BASE_URL", "https://user:hush@host", "without user"),
        ("ANTHROPIC_BASE_URL", "https://host:port", "https://"),
        ("DATABASE_URL", "mysql://u:hush@host/db", "postgresql://"),
        ("DATABASE_URL", "host=localhost password=hush", "postgresql://"),
        ("DATABASE_URL", "postgresql://u:hush@host:port/db", "postgresql://"),
        ("ADMIN_DATABASE_URL", "postgresql://u:hush@host:99999/db", "postgresql://"),
    ],
)
def test_an_impossible_value_is_refused_with_its_name_and_what_would_be_right(
    name: str, value: str, right: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(**{name: value})
    assert name in str(caught.value)
    assert right in str(caught.value)
    if name.endswith("DATABASE_URL"):
        assert "hush" not in f"{caught.value} {caught.value.__cause__}"


def test_the_answerability_bonus_can_be_switched_off_and_reach_both_ends() -> None:
    for text in ("0", "0.05", "0.15"):
        assert load(PACKING_ANSWERABILITY_BONUS=text).packing_answerability_bonus == float(text)


def test_ports_stand_between_commas() -> None:
    settings = load(CONTEXTFORGE_URL_PORTS=" 443, 8443,")
    assert settings.contextforge_url_ports == (443, 8443)
    assert shown(settings, "CONTEXTFORGE_URL_PORTS") == "443,8443"


def test_weights_by_intent_are_json_and_shown_as_such(tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text("""HYBRID_INTENT_WEIGHTS='{"lookup": [0.8, 0.2]}'""")
    settings = load_settings({}, env_file)
    assert settings.hybrid_intent_weights == {"lookup": (0.8, 0.2)}
    assert shown(settings, "HYBRID_INTENT_WEIGHTS") == '{"lookup": [0.8, 0.2]}'


def test_both_weights_at_zero_are_refused_by_name() -> None:
    with pytest.raises(SettingsError, match="HYBRID_VECTOR_WEIGHT and HYBRID_KEYWORD_WEIGHT"):
        load(HYBRID_VECTOR_WEIGHT="0", HYBRID_KEYWORD_WEIGHT="0")
    assert load(HYBRID_VECTOR_WEIGHT="0").hybrid_keyword_weight == 0.4


def test_all_mistakes_are_named_at_once() -> None:
    with pytest.raises(SettingsError, match=r"(?s)(?=.*EMBEDDING_DIM)(?=.*MMR_ALPHA)"):
        load(EMBEDDING_DIM="x", MMR_ALPHA="y")


@pytest.mark.parametrize(
    "url",
    [
        "postgres://u:p%40w@host/db",
        "postgresql+psycopg://u:p%40w@host/db",
        "postgresql://u:p%40w@host/db",
    ],
)
def test_every_accepted_database_url_is_kept_in_one_form(url: str) -> None:
    settings = load(DATABASE_URL=url)
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value() == "postgresql://u:p%40w@host/db"


@pytest.mark.parametrize(
    "url", ["postgresql://u@/db?host=/run/x", "postgresql://u@[::1]:5432/db", "postgresql://a,b:1/"]
)
def test_sockets_ipv6_and_several_hosts_are_possible(url: str) -> None:
    assert shown(load(DATABASE_URL=url), "DATABASE_URL") == url


def test_secrets_are_masked_wherever_settings_are_printed() -> None:
    settings = load(
        DATABASE_URL="postgresql://u:hush@host/db?sslmode=require&password=hush",
        ADMIN_DATABASE_URL="postgresql://a:hush@host/db",
        ANTHROPIC_API_KEY="hush-key",
    )
    assert "hush" not in f"{settings!r} {settings} {describe_settings(settings)}"
    url = "postgresql://u:***@host/db?sslmode=require&password=***"
    assert shown(settings, "DATABASE_URL") == url
    assert shown(settings, "ANTHROPIC_API_KEY") == "***"


def test_the_description_tells_what_was_set_and_what_every_setting_means() -> None:
    views = {view.name: view for view in describe_settings(load(RETRIEVAL_TRACE="1"))}
    assert (views["RETRIEVAL_TRACE"].value, views["RETRIEVAL_TRACE"].default) == ("on", "off")
    assert views["RETRIEVAL_TRACE"].source == "set"
    assert views["EMBEDDING_DIM"].source == "default"
    assert all(view.description for view in views.values())


def test_the_env_file_is_read_and_the_environment_outranks_it(tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text("# ours\nexport EMBEDDING_DIM=9\nMMR_ALPHA='0.2'\nFOREIGN=x\n")
    settings = load_settings({"MMR_ALPHA": "0.9"}, env_file)
    assert (settings.embedding_dim, settings.mmr_alpha) == (9, 0.9)


def test_the_env_file_of_the_working_directory_is_the_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert load_settings({}).embedding_dim == 1024
    (tmp_path / ".env").write_text("EMBEDDING_DIM=9\n")
    assert load_settings({}).embedding_dim == 9


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("EMBEDDING_DIMM=9", "EMBEDDING_DIMM"),
        ("EMBEDDING_DIM=x", "EMBEDDING_DIM"),
        ("EMBEDDING_DIM 9", "EMBEDDING_DIM"),
        ("PACKING_NEW 9", "PACKING_NEW"),
    ],
)
def test_a_mistake_in_the_env_file_is_refused_with_the_name_of_the_file(
    tmp_path: Path, text: str, name: str
) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text(f"A=1\n{text}\n")
    with pytest.raises(SettingsError) as caught:
        load_settings({}, env_file)
    assert name in str(caught.value)
    assert str(env_file) in str(caught.value)


def test_a_foreign_line_nobody_can_read_is_ignored(tmp_path: Path) -> None:
    env_file = tmp_path / ".env"
    env_file.write_text("if true; then\nEMBEDDING_DIM=9\n")
    assert load_settings({}, env_file).embedding_dim == 9


def test_an_env_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"\xff\xfe")
    for unreadable in (tmp_path, tmp_path / ".env"):
        with pytest.raises(SettingsError, match="cannot be read"):
            load_settings({}, unreadable)


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("DATABSE_URL", "DATABASE_URL"),
        ("DATABASE_URLS", "DATABASE_URL"),
        ("EMBEDDING_DIMS", "EMBEDDING_DIM"),
        ("embeding_dim", "EMBEDDING_DIM"),
        ("ANTHROPIC_APIKEY", "ANTHROPIC_API_KEY"),
        ("CONTEXT_TOKENS_BUDGET", "CONTEXT_TOKEN_BUDGET"),
        ("RERANK", "RERANKER"),
        ("CONTEXTFORGE_DATABASE", "CONTEXTFORGE_DATA_DIR"),
        ("PACKING_BUDGET", "PACKING_PER_DOC_CAP"),
        ("RETRIEVAL_TOP_K", "RETRIEVAL_K_BASE"),
        ("SYNTHESIS_TEMPERATURE", "SYNTHESIS_MODEL"),
        ("HYBRID_BM25_WEIGHT", "HYBRID_KEYWORD_WEIGHT"),
    ],
)
def test_a_misspelt_or_unknown_name_of_ours_is_refused_with_what_was_meant(
    wrong: str, meant: str
) -> None:
    with pytest.raises(SettingsError) as caught:
        load(**{wrong: "1"})
    assert wrong in str(caught.value)
    assert meant in str(caught.value)


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_variables_are_ignored(name: str) -> None:
    assert load(**{name: "anything"}) == load()


def test_no_setting_is_taken_for_a_misspelling_of_another() -> None:
    known = {name.upper() for name in Settings.model_fields}
    assert find_suspects(known, known) == []


names = st.text("ABC_", max_size=8)


@given(names, names, names)
def test_edit_distance_is_a_metric(a: str, b: str, c: str) -> None:
    assert (edit_distance(a, b) == 0) == (a == b)
    assert edit_distance(a, b) == edit_distance(b, a)
    assert edit_distance(a, c) <= edit_distance(a, b) + edit_distance(b, c)


def test_edit_distance_counts_single_changes() -> None:
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance("DATABASE_URL", "DATABSE_URLS") == 2
