// Joins the splits of one head and column: o = sum e^(m_s - M) o_s / sum e^(m_s - M) l_s, splits ascending.
$column
const HEAD = ${head}u;
override HEADS: u32;
override SPLITS: u32;
override OUT_STRIDE: u32;

@group(0) @binding(0) var<storage, read> columns: array<Column>;
@group(0) @binding(1) var<storage, read> partial: array<f32>;
@group(0) @binding(2) var<storage, read> state: array<vec2<f32>>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;

$split_length

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let seen = columns[group.y].position + 1u;
    let length = split_length(seen);
    let count = (seen + length - 1u) / length;
    let first = (group.y * HEADS + group.x) * SPLITS;
    var top = -3.0e38;
    for (var s = 0u; s < count; s++) { top = max(top, state[first + s].x); }
    var total = 0.0;
    for (var s = 0u; s < count; s++) { total = fma(exp(state[first + s].x - top), state[first + s].y, total); }
    for (var d = thread; d < HEAD; d += 64u) {
        var sum = 0.0;
        for (var s = 0u; s < count; s++) {
            sum = fma(exp(state[first + s].x - top), partial[(first + s) * HEAD + d], sum);
        }
        out[group.y * OUT_STRIDE + group.x * HEAD + d] = sum / total;
    }
}
