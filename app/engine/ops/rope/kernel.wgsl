// Per head and column: optional RMSNorm, rotation by position, and keys and values into the caches.
// Heads in order: queries (rotated in place), keys, values.
$column
const HEAD = ${head}u;
const THREADS = 64u;
override HEADS: u32;
override KV_HEADS: u32;
override ROTARY: u32;
override STRIDE: u32;
override EPS: f32;

@group(0) @binding(0) var<storage, read> columns: array<Column>;
@group(0) @binding(1) var<storage, read_write> qkv: array<f32>;
@group(0) @binding(2) var<storage, read_write> keys: array<$cache>;
@group(0) @binding(3) var<storage, read_write> values: array<$cache>;
@group(0) @binding(4) var<storage, read> table: array<vec2<f32>>;
$scale_binding
$norm_bindings
var<workgroup> raw: array<f32, HEAD>;
var<workgroup> turned: array<f32, HEAD>;
var<workgroup> sums: array<f32, THREADS>;
var<workgroup> eighths: array<f32, 8>;

$norm_function

// Value d of the rotated head; a pair is (first, second).
fn rotated(d: u32, angle: vec2<f32>) -> f32 {
    let first = raw[$first_of_pair];
    let second = raw[$second_of_pair];
    return select(fma(first, angle.x, -(second * angle.y)), fma(first, angle.y, second * angle.x), $is_second);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let head = group.x;
    let column = columns[group.y];
    let base = group.y * STRIDE + head * HEAD;
    let is_query = head < HEADS;
    let is_key = !is_query && head < HEADS + KV_HEADS;
    for (var d = thread; d < HEAD; d += THREADS) {
        raw[d] = qkv[base + d];
    }
    // Fetched before the barriers, so that the wait for them overlaps.
$angles
    workgroupBarrier();
$norm
$rotate
    if (is_query || column.live == 0u) { return; }
    workgroupBarrier();
    let row = (column.kv_row + column.position) * KV_HEADS + (head - HEADS) % KV_HEADS;
    for (var d = thread; d < HEAD / $packing; d += THREADS) {
        $store
        let at = row * (HEAD / $packing) + d;
        if (is_key) { keys[at] = word; } else { values[at] = word; }
    }
}
