// The best USED experts of one column, best first, and their weights. An expert's rank is the number of
// experts before it: a larger logit, or the same and a smaller id.
const THREADS = 128u;
override COUNT: u32;
override USED: u32;
override SLOTS: u32;
override STRIDE: u32;
$route

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read_write> routes: array<Route>;
// Four experts an entry, those past the last with key 0.
var<workgroup> keys: array<vec4<u32>, $quads>;
var<workgroup> ids: array<u32, $used>;
var<workgroup> chosen: array<f32, $used>;
var<workgroup> sums: array<f32, THREADS>;

// Larger floats have larger keys; NaN has key 0 and the two zeros are one.
fn key_of(value: f32) -> u32 {
    let bits = bitcast<u32>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) { return 0u; }
    if (bits == 0x80000000u) { return bits; }
    return select(bits | 0x80000000u, ~bits, (bits >> 31u) == 1u);
}

fn key_at(base: u32, i: u32) -> u32 {
    return select(0u, key_of(logits[base + min(i, COUNT - 1u)]), i < COUNT);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let base = group.x * STRIDE;
    for (var q = thread; q < ${quads}u; q += THREADS) {
        keys[q] = vec4<u32>(key_at(base, 4u * q), key_at(base, 4u * q + 1u),
                            key_at(base, 4u * q + 2u), key_at(base, 4u * q + 3u));
    }
    workgroupBarrier();
    for (var i = thread; i < COUNT; i += THREADS) {
        let key = vec4<u32>(key_at(base, i));
        var before = vec4<u32>(0u);
        for (var q = 0u; q < ${quads}u; q++) {
            let earlier = vec4<u32>(4u * q) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(i);
            before += vec4<u32>(keys[q] + vec4<u32>(earlier) > key);
        }
        let rank = before.x + before.y + before.z + before.w;
        if (rank < USED) {
            ids[rank] = i;
            chosen[rank] = logits[base + i];
        }
    }
    workgroupBarrier();
    var total = 0.0;
$total
    let at = group.x * SLOTS + thread;
    if (thread < USED) {
        routes[at] = Route(ids[thread], exp(chosen[thread] - chosen[0]) / total);
    } else if (thread < SLOTS) {
        routes[at] = Route(COUNT, 1.0 / (1.0 + exp(-logits[base + COUNT])));
    }
}
