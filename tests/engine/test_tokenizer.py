"""Tokenizers against llama.cpp's and the tokenizers library's ids of the same strings."""

import json
import time
from pathlib import Path

import pytest

from app.core.errors import ModelError
from app.engine.gguf import GgufFile
from app.engine.tokenizer import GgufTokenizer
from tests.shared import shared_file

# llama.cpp does not normalise to NFC, nor does this tokenizer; these ids are llama.cpp's.
CASES = {"qwen3": 45, "qwen35": 45}


def tiny_metadata(**changes: object) -> dict[str, object]:
    tokens = ["<|end|>", "<tool>", *"abĠ!1", "ab", "Ġa"]
    return {
        "tokenizer.ggml.model": "gpt2",
        "tokenizer.ggml.pre": "qwen2",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.token_type": [3, 4, *[1] * (len(tokens) - 2)],
        "tokenizer.ggml.merges": ["a b", "Ġ a"],
        "tokenizer.ggml.eos_token_id": 0,
    } | changes


@pytest.mark.parametrize("name", CASES)
def test_ids_equal_llama_cpp(name: str) -> None:
    file = GgufFile.open(shared_file(f"models/vocab-{name}.gguf"))
    tokenizer = GgufTokenizer(file.metadata)
    cases = json.loads(Path(shared_file(f"golden/tokenizer-{name}.json")).read_text())
    assert len(cases) == CASES[name]
    wrong = [c["text"] for c in cases if tokenizer.encode_with_specials(c["text"]) != c["llama"]]
    assert not wrong
    for case in cases:
        assert tokenizer.decode(tokenizer.encode(case["text"])) == case["text"]


def test_plain_text_never_becomes_a_special_token() -> None:
    tokenizer = GgufTokenizer(tiny_metadata())
    assert not {0, 1} & set(tokenizer.encode("ab<|end|><tool>ab"))
    assert tokenizer.encode_with_specials("ab<|end|>a") == [7, 0, 2]
    assert tokenizer.special("<tool>") == 1
    assert tokenizer.special("ab") is None


def test_begin_and_end_are_told_as_a_template_writes_them() -> None:
    tokenizer = GgufTokenizer(tiny_metadata(**{"tokenizer.ggml.bos_token_id": 99}))
    assert (tokenizer.bos_text, tokenizer.eos_text) == ("", "<|end|>")
    assert GgufTokenizer(tiny_metadata(**{"tokenizer.ggml.bos_token_id": 1})).bos_text == "<tool>"


def test_pieces_are_raw_bytes() -> None:
    tokenizer = GgufTokenizer(tiny_metadata())
    assert tokenizer.piece(8) == b" a"
    assert tokenizer.piece(0) == b""
    assert tokenizer.piece(1) == b"<tool>"
    assert tokenizer.piece(99) == b""


def test_one_long_word_takes_linear_time() -> None:
    tokenizer = GgufTokenizer(tiny_metadata())

    def seconds(length: int) -> float:
        start = time.perf_counter()
        assert len(tokenizer.encode("ab" * length)) == length
        return time.perf_counter() - start

    seconds(1000)
    assert seconds(160_000) < 40 * max(seconds(20_000), 0.005)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"tokenizer.ggml.pre": "qwen-2"}, "qwen2"),
        ({"tokenizer.ggml.model": "llama"}, "llama"),
        ({"tokenizer.ggml.tokens": []}, "vocabulary"),
        ({"tokenizer.ggml.token_type": [1] * 99}, "kinds"),
        ({"tokenizer.ggml.merges": 7}, "merges"),
    ],
)
def test_refusals_name_what_is_wrong(change: dict[str, object], word: str) -> None:
    with pytest.raises(ModelError, match=word):
        GgufTokenizer(tiny_metadata(**change))
