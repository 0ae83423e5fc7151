// Every logit at or above the threshold, as (id, bits) pairs in any order; the count may pass the room
// there is, then the whole row is read instead.
override VOCAB: u32;
override STRIDE: u32;
override SPACE: u32;
override ROOM: u32;

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read_write> result: array<atomic<u32>>;

$ordered

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= VOCAB) { return; }
    let base = id.y * SPACE;
    let value = logits[id.y * STRIDE + id.x];
    let key = ordered(value);
    if (key != 0u && key >= atomicLoad(&result[base + 6u])) {
        let at = atomicAdd(&result[base + 5u], 1u);
        if (at < ROOM) {
            atomicStore(&result[base + 8u + 2u * at], id.x);
            atomicStore(&result[base + 9u + 2u * at], bitcast<u32>(value));
        }
    }
}
