"""What is read from disk or typed: model files, settings, saved rooms, invites, addresses of servers."""

from __future__ import annotations

import atexit
import os
import shutil
import struct
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from random import Random

from cryptography.fernet import Fernet

from app.core.errors import FileError, ModelError, RoomError
from app.core.sealed import SealedFile
from app.core.settings import Settings, load_settings, save_settings, settings_path
from app.engine.arch import read_config
from app.engine.gguf import GgufFile
from app.room.codes import parse_code
from app.room.gate import Gate
from app.room.ice import IceConfig, Relay
from app.room.invite import Invite, parse_invite
from app.room.saved_room import SavedJoin, SavedRoom, decode_saved, encode_saved, read_gate, saved_gate
from app.room.signal_servers import parse_server
from tests.fuzzing.guard import Fault, Target

_TAIL = 1 << 16
_U32, _FLOAT, _TEXT, _LIST, _I32 = 4, 6, 8, 9, 5


@cache
def folder() -> Path:
    """Files of this process, in memory where the system has such a place; gone with it."""
    shm = Path("/dev/shm")
    made = Path(tempfile.mkdtemp(prefix="pooled-fuzz-", dir=shm if os.access(shm, os.W_OK) else None))
    atexit.register(shutil.rmtree, made, ignore_errors=True)
    return made


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _pair(key: str, kind: int, value: bytes) -> bytes:
    return _text(key) + struct.pack("<I", kind) + value


def _tensor(name: str, shape: Sequence[int], kind: int, offset: int) -> bytes:
    return _text(name) + struct.pack(f"<I{len(shape)}QIQ", len(shape), *shape, kind, offset)


def _gguf() -> bytes:
    """The header of a small Qwen3; its tensors lie in the zeros behind it."""
    sizes = {"block_count": 2, "embedding_length": 32, "feed_forward_length": 64, "context_length": 128,
             "attention.head_count": 2, "attention.head_count_kv": 1, "attention.key_length": 16,
             "attention.value_length": 16}  # fmt: skip
    pairs = [_pair("general.architecture", _TEXT, _text("qwen3")), _pair("split.count", _U32, struct.pack("<I", 1))]
    pairs += [_pair(f"qwen3.{name}", _U32, struct.pack("<I", size)) for name, size in sizes.items()]
    pairs += [_pair("qwen3.attention.layer_norm_rms_epsilon", _FLOAT, struct.pack("<f", 1e-6))]
    words = b"".join(map(_text, ("a", "b", "ab")))
    pairs += [_pair("tokenizer.ggml.tokens", _LIST, struct.pack("<IQ", _TEXT, 3) + words)]
    pairs += [_pair("tokenizer.ggml.token_type", _LIST, struct.pack("<IQ3i", _I32, 3, 1, 1, 3))]
    tensors = [_tensor("token_embd.weight", (32, 3), 0, 0), _tensor("blk.0.attn_q.weight", (32, 32), 8, 384)]
    return b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(pairs)) + b"".join(pairs + tensors)


def _open_model(data: bytes) -> object:
    path = folder() / "model.gguf"
    with path.open("wb") as stream:
        stream.write(data)
        stream.truncate(len(data) + _TAIL)
    file = GgufFile.open(path)
    read_config(file)
    for tensor in file.tensors.values():
        file.read(tensor, rows=1)
    return file


def _settings(data: bytes) -> object:
    os.environ["POOLED_HOME"] = str(folder())
    settings_path().write_bytes(data)
    settings, damaged = load_settings(), settings_path().with_suffix(".json.damaged")
    if not damaged.exists():
        return settings
    damaged.unlink()
    return None


def _setting_samples() -> Sequence[bytes]:
    os.environ["POOLED_HOME"] = str(folder())
    save_settings(Settings(name="otter", pledge_gb=4, signal=("cloud", "lan:9000")))
    return [settings_path().read_bytes(), b"[" * 60_000, b'{"room":' * 7_000, b"{}"]


def _saved(data: bytes) -> object:
    saved = decode_saved(data)
    if isinstance(saved, SavedRoom):
        read_gate(saved.gate)
    return saved


def _saved_samples() -> Sequence[bytes]:
    gate = Gate().with_pass("p" * 22, "otter")
    room = SavedRoom("4TKG9P", "otter", 4.0, saved_gate(gate), host="otter", holders=("heron",))
    return [encode_saved(room), encode_saved(SavedJoin("4TKG9P", "heron", 2.0, "pooled://r/4TKG9P")), b"[" * 9_000]


@cache
def _sealed_file() -> SealedFile:
    return SealedFile(folder() / "room.sealed", Fernet.generate_key().decode())


def _unseal(data: bytes) -> object:
    """Only what was written with the key is ever read."""
    file, path = _sealed_file(), folder() / "room.sealed"
    path.write_bytes(data)
    content = file.read()
    if content is not None and content != b"as it was":
        raise Fault("a forged room was unsealed")
    return content


def _sealed_samples() -> Sequence[bytes]:
    _sealed_file().write(b"as it was")
    return [(folder() / "room.sealed").read_bytes(), b""]


def _invited(data: bytes) -> object:
    """What is read can be written and read again."""
    said = data.decode(errors="surrogateescape")
    parse_code(said)
    invite = parse_invite(said)
    parse_server(invite.signal)
    again = parse_invite(Invite(invite.code, invite.key, fingerprint=invite.fingerprint).app_link())
    if (again.code, again.key, again.fingerprint) != (invite.code, invite.key, invite.fingerprint):
        raise Fault(f"an invite reads back as {again}")
    return invite


def _invite_samples() -> Sequence[bytes]:
    full = Invite("4TKG9P", "k" * 22, "http://192.168.1.20:7420", "ws://lan:9000/pooled", "ab" * 32)
    texts = ["4tk-g9p", full.web_link(), full.app_link(), "https://x/?code=4TKG9P", "https://[::1]:80/r/4TKG9P#k="]
    return [text.encode() for text in texts]


def _address(data: bytes) -> object:
    """A relay that is taken can be given to the connections; a server's label reads back."""
    said = data.decode(errors="surrogateescape")
    server = parse_server(said)
    if server is not None and parse_server(server.label) != server:
        raise Fault(f"a server reads back as {parse_server(server.label)}")
    relay = Relay(said, "user", "word")
    IceConfig((), (relay,)).configuration()
    if relay.address is not None:
        assert 0 < relay.address.port < 2**16, "a port that no socket takes"
        assert relay.address.host, "nowhere"
    return server or (relay if relay.valid else None)


def _addresses(rng: Random) -> bytes:
    scheme = rng.choice(("", "turn:", "turns:", "ws://", "wss://", "https://", "//"))
    host = rng.choice(("host", "[::1]", "10.0.0.1", "a..b", "[", "xn--", "\u2024", "h%40", "u:p@h"))
    port = rng.choice(("", ":0", ":80", ":443", ":65535", ":65536", ":99999", ":-1", ":\u0663"))
    return (scheme + host + port + rng.choice(("", "/", "/a//b", "?transport=tcp", "?x", "/%2f", "//"))).encode()


TARGETS = [
    Target("gguf", lambda: [_gguf()], _open_model, (FileError, ModelError), beside=_TAIL),
    Target("settings", _setting_samples, _settings),
    Target("saved-room", _saved_samples, _saved),
    Target("sealed", _sealed_samples, _unseal),
    Target("invite", _invite_samples, _invited, (RoomError,)),
    Target("addresses", lambda: [b"turn:host:3478?transport=udp", b"wss://host:9000/pooled"], _address, (), _addresses),
]
