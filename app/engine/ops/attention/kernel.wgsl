// Flash attention of one column, one KV head and its $group query heads over the keys [from, to).
// Chunks of 64 keys in ascending order with a running maximum and sum; which keys a workgroup takes depends only on the column's absolute position.
$column
const HEAD = ${head}u;
const GROUP = ${group}u;
const CHUNK = 64u;
const THREADS = ${threads}u;
const PAIRS = HEAD / 2u;
const BANDS = ${bands}u;
override HEADS: u32;
override KV_HEADS: u32;
override PARTS: u32;
override Q_STRIDE: u32;
override OUT_STRIDE: u32;
override SPLITS: u32 = 1u;
override SCALE: f32;

@group(0) @binding(0) var<storage, read> columns: array<Column>;
@group(0) @binding(1) var<storage, read> qkv: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> keys: array<$cache4>;
@group(0) @binding(3) var<storage, read> values: array<$cache2>;
@group(0) @binding(4) var<storage, read_write> out: array<f32>;
$state_binding
var<workgroup> scores: array<f32, ${scores}>;
var<workgroup> tree: array<f32, ${scores}>;
var<workgroup> peak: array<f32, GROUP>;
var<workgroup> total: array<f32, GROUP>;
var<workgroup> shrink: array<f32, GROUP>;
var<workgroup> sums: array<f32, ${sums}>;

$split_length

fn key4(at: u32) -> vec4<f32> {
    return $read_key;
}

fn value2(at: u32) -> vec2<f32> {
    return $read_value;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group_id: vec3<u32>) {
    let column = columns[group_id.y];
    let kv_head = group_id.x / PARTS;
    let first_head = group_id.x * GROUP;
    let query = (group_id.y * Q_STRIDE + first_head * HEAD) / 4u;
    let seen = column.position + 1u;
$range
    for (var g = thread; g < GROUP; g += THREADS) {
        peak[g] = -3.0e38;
        total[g] = 0.0;
    }
    let band = thread / min(PAIRS, THREADS);
    let pair = thread % min(PAIRS, THREADS);
$zero
    workgroupBarrier();
    for (var start = from_key; start < to_key; start += CHUNK) {
        for (var t = thread; t < CHUNK; t += THREADS) {
            let inside = start + t < to_key;
            let row = ((column.kv_row + min(start + t, to_key - 1u)) * KV_HEADS + kv_head) * (HEAD / 4u);
$zero_dots
            for (var i = 0u; i < HEAD / 4u; i++) {
                let k = key4(row + i);
$dots
            }
$store_dots
        }
        workgroupBarrier();
        for (var half = CHUNK / 2u; half > 0u; half >>= 1u) {
            for (var i = thread; i < GROUP * half; i += THREADS) {
                let at = i / half * CHUNK + i % half;
                tree[at] = max(tree[at], tree[at + half]);
            }
            workgroupBarrier();
        }
        for (var g = thread; g < GROUP; g += THREADS) {
            let top = max(peak[g], tree[g * CHUNK]);
            shrink[g] = exp(peak[g] - top);
            peak[g] = top;
        }
        workgroupBarrier();
        for (var i = thread; i < GROUP * CHUNK; i += THREADS) {
            let p = select(0.0, exp(scores[i] - peak[i / CHUNK]), start + i % CHUNK < to_key);
            scores[i] = p;
            tree[i] = p;
        }
        workgroupBarrier();
        for (var half = CHUNK / 2u; half > 0u; half >>= 1u) {
            for (var i = thread; i < GROUP * half; i += THREADS) {
                let at = i / half * CHUNK + i % half;
                tree[at] += tree[at + half];
            }
            workgroupBarrier();
        }
        for (var g = thread; g < GROUP; g += THREADS) {
            total[g] = fma(total[g], shrink[g], tree[g * CHUNK]);
        }
        if (band < BANDS) {
$shrink
            let stop = min(CHUNK, to_key - start);
            for (var t = band; t < stop; t += BANDS) {
                let at = ((column.kv_row + start + t) * KV_HEADS + kv_head) * PAIRS + pair;
$weigh
            }
        }
        workgroupBarrier();
    }
    if (band < BANDS) {
$store_bands
    }
    workgroupBarrier();
    for (var d = thread; d < GROUP * HEAD; d += THREADS) {
        var sum = sums[d];
        for (var b = 1u; b < BANDS; b++) { sum += sums[b * GROUP * HEAD + d]; }
        let head = first_head + d / HEAD;
$write
    }
$write_state
}
