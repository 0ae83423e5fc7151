// A guest in a room through PeerJS's own client: knocks, proves the key if it has one, asks one question.
"use strict";

const asked = new URLSearchParams(location.search);
const creator = `pooled-room-${asked.get("code")}`;
const key = asked.get("key") ?? "";
const encoder = new TextEncoder();

let telling = Promise.resolve();
function tell(event) {
  telling = telling.then(() => fetch("said", { method: "POST", body: JSON.stringify(event) }));
}

const hex = (buffer) => Array.from(new Uint8Array(buffer), (byte) => byte.toString(16).padStart(2, "0")).join("");
const sha256 = async (text) => hex(await crypto.subtle.digest("SHA-256", encoder.encode(text)));

async function hmac(secret, text) {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const imported = await crypto.subtle.importKey("raw", encoder.encode(secret), algorithm, false, ["sign"]);
  return hex(await crypto.subtle.sign("HMAC", imported, encoder.encode(text)));
}

function newNonce() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  const text = btoa(String.fromCharCode(...bytes));
  return text.replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function fingerprint(description) {
  const shown = [...description.sdp.matchAll(/^a=fingerprint:(\S+) (\S+)/gm)].map((m) => `${m[1]} ${m[2]}`.toLowerCase());
  if (new Set(shown).size !== 1) throw new Error(`an end shows ${shown.length} fingerprints`);
  return shown[0];
}

class Guest {
  constructor(me, connection) {
    this.me = me;
    this.connection = connection;
    this.nonce = newNonce();
    this.answer = "";
    this.handlers = {
      hello: () => this.greet(),
      auth: (message) => this.prove(message),
      lobby: () => tell({ event: "lobby", digits: this.digits }),
      admit: (message) => this.enter(message),
      bye: (message) => tell({ event: "bye", reason: message.reason }),
      ping: (message) => connection.send({ t: "pong", ts: message.ts }),
      roster: (message) => tell({ event: "roster", names: message.members.map((member) => member.name) }),
      "ai-ready-all": () => this.ask(),
      "ai-token": (message) => { this.answer += message.text; },
      "ai-gendone": () => tell({ event: "answer", text: this.answer }),
    };
    // Some answers take a moment; the next message waits for them.
    let earlier = Promise.resolve();
    connection.on("data", (message) => { earlier = earlier.then(() => this.handlers[message.t]?.(message)).catch(complain); });
  }

  async greet() {
    const proves = key ? { kc: 1 } : {};
    const jc = await sha256(`pooled-commit-v1\n${this.nonce}`);
    const meta = { ua: "Browser", webgpu: false, contribGB: 0 };
    this.connection.send({ t: "hello", name: "visitor", meta, v: 4, auth: 1, join: 1, jc, ...proves });
  }

  async prove({ hn }) {
    const ends = this.connection.peerConnection;
    this.binding = [fingerprint(ends.localDescription), fingerprint(ends.remoteDescription)].sort().join(",");
    this.creatorNonce = hn;
    const number = parseInt((await sha256(`pooled-sas-v1\n${this.binding}\n${this.nonce}\n${hn}`)).slice(0, 8), 16);
    this.digits = String(number % 1000000).padStart(6, "0").replace(/^(...)/, "$1 ");
    const proof = key ? { kp: await hmac(key, this.transcript("join")) } : {};
    this.connection.send({ t: "auth-proof", jn: this.nonce, ...proof });
  }

  transcript(role) {
    const lines = ["pooled-auth-v1", `role=${role}`, "cred=key", `fp=${this.binding}`, `ids=${this.me},${creator}`];
    return [...lines, `jn=${this.nonce}`, `hn=${this.creatorNonce}`].join("\n");
  }

  async enter({ via, hp, pass }) {
    const verified = key !== "" && via === "key" && hp === (await hmac(key, this.transcript("host")));
    tell({ event: "admitted", verified, pass: pass ?? "" });
  }

  ask() {
    if (!this.asked) this.connection.send({ t: "ai-ask", text: asked.get("question") });
    this.asked = true;
  }
}

function complain(error) {
  tell({ event: "error", what: String(error) });
}

const server = { host: location.hostname, port: Number(asked.get("port")), path: "/pooled", secure: false };
const peer = new peerjs.Peer({ ...server, config: { iceServers: [] } });
peer.on("error", complain);
peer.on("open", (me) => new Guest(me, peer.connect(creator, { reliable: true })));
