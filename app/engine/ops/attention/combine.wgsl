// Joins the splits of one head and column: o = sum e^(m_s - M) o_s / sum e^(m_s - M) l_s.
// Each band of threads takes every BANDS-th split in ascending order; then the bands are added in order.
$column
const HEAD = ${head}u;
const QUADS = HEAD / 4u;
const THREADS = ${threads}u;
const BANDS = ${bands}u;
const MOST = ${max_splits}u;
override HEADS: u32;
override SPLITS: u32;
override Q_STRIDE: u32;
override OUT_STRIDE: u32;

@group(0) @binding(0) var<storage, read> columns: array<Column>;
@group(0) @binding(1) var<storage, read> partial: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> state: array<vec2<f32>>;
$out_binding
$gate_binding
var<workgroup> tops: array<f32, MOST>;
var<workgroup> weights: array<f32, MOST>;
var<workgroup> totals: array<f32, MOST>;
var<workgroup> eighths: array<f32, 8>;
var<workgroup> sums: array<vec4<f32>, ${sums}>;

$split_length
$shuffles

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let seen = columns[group.y].position + 1u;
    let length = split_length(seen);
    let count = (seen + length - 1u) / length;
    let first = (group.y * HEADS + group.x) * SPLITS;
    let band = thread / min(QUADS, THREADS);
    let quad = thread % min(QUADS, THREADS);
$fetch
    for (var s = thread; s < MOST; s += THREADS) {
        let own = state[first + min(s, count - 1u)];
        tops[s] = own.x;
        totals[s] = own.y;
    }
    workgroupBarrier();
    for (var i = thread; i < 8u; i += THREADS) {
        let s = i * 8u;
        eighths[i] = max(max(max(tops[s], tops[s + 1u]), max(tops[s + 2u], tops[s + 3u])),
            max(max(tops[s + 4u], tops[s + 5u]), max(tops[s + 6u], tops[s + 7u])));
    }
    workgroupBarrier();
    let top = max(max(max(eighths[0], eighths[1]), max(eighths[2], eighths[3])),
        max(max(eighths[4], eighths[5]), max(eighths[6], eighths[7])));
    for (var s = thread; s < MOST; s += THREADS) {
        let weight = select(0.0, exp(tops[s] - top), s < count);
        weights[s] = weight;
        totals[s] *= weight;
    }
    workgroupBarrier();
    for (var i = thread; i < 8u; i += THREADS) {
        let s = i * 8u;
        eighths[i] = ((totals[s] + totals[s + 1u]) + (totals[s + 2u] + totals[s + 3u]))
            + ((totals[s + 4u] + totals[s + 5u]) + (totals[s + 6u] + totals[s + 7u]));
    }
$join
    workgroupBarrier();
    let total = ((eighths[0] + eighths[1]) + (eighths[2] + eighths[3]))
        + ((eighths[4] + eighths[5]) + (eighths[6] + eighths[7]));
    for (var from_quad = 0u; from_quad < QUADS; from_quad += THREADS) {
        let q = min(from_quad + thread, QUADS - 1u);
        let inside = from_quad + thread < QUADS;
        var sum = sums[q];
        for (var b = 1u; b < BANDS; b++) { sum += sums[b * QUADS + q]; }
        let value = sum / total;
        let result = $gated;
        let at = group.y * (OUT_STRIDE / 4u) + group.x * QUADS + q;
$write
    }
}
