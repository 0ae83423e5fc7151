"""What is found in the stores of other programs, whole, damaged or of another kind."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from app.models.places import Origin
from app.models.stores import Found, scan_stores
from app.models.stores.ollama import LARGEST_MANIFEST
from app.models.stores.scan import store_roots
from tests.models.stores import put, put_hugging_face, put_lm_studio, put_ollama, sha256_of

CONTENT = b"GGUF weights"


def scanned(home: Path) -> tuple[Found, ...]:
    return tuple(found for found in scan_stores({}, home) if found.path.is_relative_to(home))


def test_each_store_is_found_with_what_it_knows(tmp_path: Path) -> None:
    ollama = put_ollama(tmp_path, CONTENT, "library/qwen3/0.6b")
    lm_studio = put_lm_studio(tmp_path, CONTENT)
    hub = put_hugging_face(tmp_path, CONTENT)
    size, sha256 = len(CONTENT), sha256_of(CONTENT)
    assert set(scanned(tmp_path)) == {
        Found(ollama, size, sha256, Origin.OLLAMA, "qwen3:0.6b"),
        Found(lm_studio, size, "", Origin.LM_STUDIO, "m"),
        Found(hub, size, sha256, Origin.HUGGING_FACE, "m"),
    }


def test_nothing_there_is_nothing_found(tmp_path: Path) -> None:
    assert scanned(tmp_path / "none") == ()


def test_somebody_elses_model_is_named_with_its_owner(tmp_path: Path) -> None:
    put_ollama(tmp_path, CONTENT, "someone/tiny/q8")
    assert [found.label for found in scanned(tmp_path)] == ["someone/tiny:q8"]


@pytest.mark.parametrize(
    "changes",
    [
        {"digest": "sha256:../../../etc/passwd"},
        {"digest": "sha256:" + "f" * 64},
        {"digest": 7},
        {"size": len(CONTENT) + 1},
        {"size": "many"},
        {"mediaType": "application/vnd.ollama.image.projector"},
    ],
    ids=str,
)
def test_a_manifest_that_does_not_fit_its_files_is_passed_over(tmp_path: Path, changes: dict[str, Any]) -> None:
    put_ollama(tmp_path, CONTENT, **changes)
    assert scanned(tmp_path) == ()


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[]", b"null", b'{"layers": 3}', b"[" * 100_000, b"\xff\xfe", b" " * (LARGEST_MANIFEST + 1)],
    ids=["empty", "cut", "list", "null", "no list", "deep", "no text", "huge"],
)
def test_a_damaged_manifest_does_not_hide_the_others(tmp_path: Path, text: bytes) -> None:
    put_ollama(tmp_path, CONTENT)
    put(tmp_path / ".ollama" / "models" / "manifests" / "registry.test" / "library" / "bad" / "latest", text)
    assert len(scanned(tmp_path)) == 1


def test_links_that_lead_nowhere_or_round_are_passed_over(tmp_path: Path) -> None:
    link = put_hugging_face(tmp_path, CONTENT)
    (link.parent / "gone.gguf").symlink_to(tmp_path / "nothing")
    (link.parent / "round.gguf").symlink_to(link.parent / "round.gguf")
    (link.parent / "folder.gguf").mkdir()
    assert [found.path for found in scanned(tmp_path)] == [link]


def test_a_content_of_two_snapshots_is_found_once(tmp_path: Path) -> None:
    for commit in ("c1", "c2"):
        put_hugging_face(tmp_path, CONTENT, commit=commit)
    assert len(scanned(tmp_path)) == 1


def test_a_cache_without_links_has_no_hashes(tmp_path: Path) -> None:
    link = put_hugging_face(tmp_path, CONTENT)
    link.unlink()
    link.write_bytes(CONTENT)
    assert [found.sha256 for found in scanned(tmp_path)] == [""]


def test_downloads_and_empty_files_are_not_offered(tmp_path: Path) -> None:
    put_lm_studio(tmp_path, CONTENT, "m.gguf.part")
    put_lm_studio(tmp_path, b"", "empty.gguf")
    assert scanned(tmp_path) == ()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may look anywhere")
def test_a_folder_that_may_not_be_seen_is_passed_over(tmp_path: Path) -> None:
    put_lm_studio(tmp_path, CONTENT)
    put_ollama(tmp_path, CONTENT)
    (tmp_path / ".lmstudio").chmod(0)
    assert [found.origin for found in scanned(tmp_path)] == [Origin.OLLAMA]


@pytest.mark.parametrize(
    ("variables", "origin", "root"),
    [
        ({}, Origin.OLLAMA, "/home/me/.ollama/models"),
        ({"OLLAMA_MODELS": "/big/ollama"}, Origin.OLLAMA, "/big/ollama"),
        ({}, Origin.LM_STUDIO, "/home/me/.lmstudio/models"),
        ({}, Origin.LM_STUDIO, "/home/me/.cache/lm-studio/models"),
        ({}, Origin.HUGGING_FACE, "/home/me/.cache/huggingface/hub"),
        ({"HF_HOME": "/big/hf"}, Origin.HUGGING_FACE, "/big/hf/hub"),
        ({"HF_HOME": "/big/hf", "HF_HUB_CACHE": "/big/hub"}, Origin.HUGGING_FACE, "/big/hub"),
        ({"XDG_CACHE_HOME": "/big/cache"}, Origin.HUGGING_FACE, "/big/cache/huggingface/hub"),
    ],
)
def test_stores_are_where_their_programs_were_told(variables: dict[str, str], origin: Origin, root: str) -> None:
    assert (origin, Path(root)) in store_roots(variables, Path("/home/me"))
