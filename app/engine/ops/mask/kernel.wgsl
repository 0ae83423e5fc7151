// Logits of ids whose bit is not set become as good as impossible.
override VOCAB: u32;
override STRIDE: u32;
override WORDS: u32;

@group(0) @binding(0) var<storage, read_write> logits: array<f32>;
@group(0) @binding(1) var<storage, read> masks: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= VOCAB) { return; }
    let allowed = (masks[id.y * WORDS + id.x / 32u] >> (id.x % 32u)) & 1u;
    if (allowed == 0u) { logits[id.y * STRIDE + id.x] = -3.0e38; }
}
