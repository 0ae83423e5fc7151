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
$norm_bindings
var<workgroup> raw: array<f32, HEAD>;
var<workgroup> turned: array<f32, HEAD>;
var<workgroup> sums: array<f32, THREADS>;

$norm_function

fn rotate(pair: u32, position: u32) {
    let angle = table[position * (ROTARY / 2u) + pair];
    let i = $first_of_pair;
    let j = $second_of_pair;
    turned[i] = fma(raw[i], angle.x, -(raw[j] * angle.y));
    turned[j] = fma(raw[i], angle.y, raw[j] * angle.x);
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
    workgroupBarrier();
$norm
    for (var d = thread; d < HEAD; d += THREADS) {
        turned[d] = raw[d];
    }
    workgroupBarrier();
    if (is_query || is_key) {
        for (var pair = thread; pair < ROTARY / 2u; pair += THREADS) {
            rotate(pair, column.position);
        }
    }
    workgroupBarrier();
    if (is_query) {
        for (var d = thread; d < HEAD; d += THREADS) {
            qkv[base + d] = turned[d];
        }
    } else if (column.live != 0u) {
        let kv_head = (head - HEADS) % KV_HEADS;
        let row = (column.kv_row + column.position) * KV_HEADS + kv_head;
        for (var d = thread; d < HEAD / $packing; d += THREADS) {
            let at = row * (HEAD / $packing) + d;
            if (is_key) { keys[at] = $packed; } else { values[at] = $packed; }
        }
    }
}
