// Flash attention of one step column, one KV head and $group of its query heads over the keys of one split.
// Chunks of 64 keys in ascending order with a running maximum and sum. Which keys a split takes, and in
// what order they are added, depends only on the column's absolute position.
$column
const HEAD = ${head}u;
const QUADS = HEAD / 4u;
const GROUP = ${group}u;
const CHUNK = 64u;
const THREADS = ${threads}u;
// Threads that share a key, and the 16-byte words of a key.
const LANES = ${lanes}u;
const WORDS = ${words}u;
const BANDS = ${bands}u;
const BATCH = ${batch}u;
override HEADS: u32;
override KV_HEADS: u32;
override PARTS: u32;
override Q_STRIDE: u32;
override SPLITS: u32;
override SCALE: f32;

@group(0) @binding(0) var<storage, read> columns: array<Column>;
@group(0) @binding(1) var<storage, read> qkv: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> keys: array<$word>;
@group(0) @binding(3) var<storage, read> values: array<$quad>;
@group(0) @binding(4) var<storage, read_write> partial: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read_write> state: array<vec2<f32>>;
$scale_binding
var<workgroup> dots: array<f32, ${dots}>;
var<workgroup> scores: array<f32, ${scores}>;
var<workgroup> eighths: array<f32, ${eighths}>;
var<workgroup> peak: array<f32, GROUP>;
var<workgroup> total: array<f32, GROUP>;
var<workgroup> shrink: array<f32, GROUP>;
var<workgroup> sums: array<vec4<f32>, ${sums}>;

$split_length

$value4

fn top_of(g: u32) -> f32 {
    let i = g * 8u;
    return max(peak[g], max(max(max(eighths[i], eighths[i + 1u]), max(eighths[i + 2u], eighths[i + 3u])),
        max(max(eighths[i + 4u], eighths[i + 5u]), max(eighths[i + 6u], eighths[i + 7u]))));
}

fn eight(i: u32) -> f32 {
    return ((eighths[i] + eighths[i + 1u]) + (eighths[i + 2u] + eighths[i + 3u]))
        + ((eighths[i + 4u] + eighths[i + 5u]) + (eighths[i + 6u] + eighths[i + 7u]));
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group_id: vec3<u32>) {
    let column = columns[group_id.y];
    let kv_head = group_id.x / PARTS;
    let first_head = group_id.x * GROUP;
    let query = group_id.y * (Q_STRIDE / 4u) + first_head * QUADS;
    let seen = column.position + 1u;
    let length = split_length(seen);
    let from_key = min(group_id.z * length, seen);
    let to_key = min(from_key + length, seen);
    if (group_id.z * length >= seen) { return; }
    let lane = thread % LANES;
    let band = thread / min(QUADS, THREADS);
    let quad = thread % min(QUADS, THREADS);
    for (var g = thread; g < GROUP; g += THREADS) {
        peak[g] = -3.0e38;
        total[g] = 0.0;
    }
$zero
    for (var start = from_key; start < to_key; start += CHUNK) {
$fetch
        for (var t = thread / LANES; t < CHUNK; t += THREADS / LANES) {
            let rh = (column.kv_row + min(start + t, to_key - 1u)) * KV_HEADS + kv_head;
$zero_dots
            for (var e = 0u; e < ${word_steps}u; e++) {
                let i = e * LANES + lane;
                if (i < WORDS) {
$load_word
$dots_of_word
                }
            }
$store_dots
        }
        workgroupBarrier();
        for (var i = thread; i < GROUP * CHUNK; i += THREADS) {
            scores[i] = select(-3.0e38, $join_lanes * SCALE, start + i % CHUNK < to_key);
        }
        workgroupBarrier();
        for (var i = thread; i < GROUP * 8u; i += THREADS) {
            let s = i * 8u;
            eighths[i] = max(max(max(scores[s], scores[s + 1u]), max(scores[s + 2u], scores[s + 3u])),
                max(max(scores[s + 4u], scores[s + 5u]), max(scores[s + 6u], scores[s + 7u])));
        }
        workgroupBarrier();
        for (var i = thread; i < GROUP * CHUNK; i += THREADS) {
            let top = top_of(i / CHUNK);
            if (i % CHUNK == 0u) { shrink[i / CHUNK] = top; }
            scores[i] = select(0.0, exp(scores[i] - top), start + i % CHUNK < to_key);
        }
        workgroupBarrier();
        for (var i = thread; i < GROUP * 8u; i += THREADS) {
            let s = i * 8u;
            eighths[i] = ((scores[s] + scores[s + 1u]) + (scores[s + 2u] + scores[s + 3u]))
                + ((scores[s + 4u] + scores[s + 5u]) + (scores[s + 6u] + scores[s + 7u]));
        }
        for (var g = thread; g < GROUP; g += THREADS) {
            let top = shrink[g];
            shrink[g] = exp(peak[g] - top);
            peak[g] = top;
        }
        workgroupBarrier();
        for (var g = thread; g < GROUP; g += THREADS) {
            total[g] = fma(total[g], shrink[g], eight(g * 8u));
        }
        if (band < BANDS) {
$shrink
$weigh_fetched
            for (var t = band; t < $stop; t += BANDS) {
                let rh = (column.kv_row + min(start + t, to_key - 1u)) * KV_HEADS + kv_head;
$weigh
            }
        }
        workgroupBarrier();
    }
$write
    for (var g = thread; g < GROUP; g += THREADS) {
        state[(group_id.y * HEADS + first_head + g) * SPLITS + group_id.z] = vec2<f32>(peak[g], total[g]);
    }
}
