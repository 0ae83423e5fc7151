// Flash attention of prompt columns: $rows query rows (a row is a column and one of the query heads of a KV
// head) against tiles of 64 keys at absolute multiples of 64. A score adds its products in ascending
// order, an output its keys in ascending order, each in one accumulator, and a key after a row's own position
// adds exactly nothing; so a row's bits depend on its own position alone, not even on the size of the tile.
$column
const HEAD = ${head}u;
const QUADS = HEAD / 4u;
const GROUP = ${group}u;
const THREADS = ${threads}u;
const ROW_QUADS = ${row_quads}u;
// Four rows, or four keys, an entry: a step stages DEPTH_QUADS * 4 values of each.
const DEPTH_QUADS = ${depth_quads}u;
const KEY_STAGE = DEPTH_QUADS * 4u * ROW_QUADS;
// Keys whose values are staged at a time.
const STAGED = ${staged}u;
const QUERY_TASKS = ROW_QUADS * DEPTH_QUADS;
const TASKS = QUERY_TASKS + 16u * DEPTH_QUADS;
const SCORE_ROWS = ROW_QUADS / ${score_quads}u;
const OUT_THREADS = THREADS / 8u;
$bindings
// Queries and keys of a step, then maxima and sums, then values.
var<workgroup> stage: array<vec4<f32>, ${stage}>;
// Scores, then weights: [key][row quad].
var<workgroup> weights: array<vec4<f32>, ${weights}>;

$key4

$value4

fn column_of(row: u32) -> u32 {
    return min(row / GROUP, COLUMNS - 1u);
}

fn positions(row: u32) -> vec4<u32> {
    return vec4<u32>(columns[column_of(row)].position, columns[column_of(row + 1u)].position,
        columns[column_of(row + 2u)].position, columns[column_of(row + 3u)].position);
}

fn query4(row: u32, kv_head: u32, i: u32) -> vec4<f32> {
    return qkv[column_of(row) * (Q_STRIDE / 4u) + (kv_head * GROUP + row % GROUP) * QUADS + i];
}

// Values 4i to 4i + 3 of four rows: a value's four rows side by side. Past the end of a head all is zero.
fn queries(row: u32, kv_head: u32, i: u32) -> mat4x4<f32> {
    if (i >= QUADS) { return mat4x4<f32>(); }
    return transpose(mat4x4<f32>(query4(row, kv_head, i), query4(row + 1u, kv_head, i),
        query4(row + 2u, kv_head, i), query4(row + 3u, kv_head, i)));
}

fn four_keys(kv_row: u32, key: u32, seen: u32, kv_head: u32, i: u32) -> mat4x4<f32> {
    if (i >= QUADS) { return mat4x4<f32>(); }
    let last = seen - 1u;
    return transpose(mat4x4<f32>(key4((kv_row + min(key, last)) * KV_HEADS + kv_head, i),
        key4((kv_row + min(key + 1u, last)) * KV_HEADS + kv_head, i),
        key4((kv_row + min(key + 2u, last)) * KV_HEADS + kv_head, i),
        key4((kv_row + min(key + 3u, last)) * KV_HEADS + kv_head, i)));
}

// Task ``task`` of a step: four rows or four keys.
fn fetch(task: u32, first_row: u32, kv_row: u32, start: u32, seen: u32, kv_head: u32, depth: u32) -> mat4x4<f32> {
    let i = depth + task % DEPTH_QUADS;
    if (task < QUERY_TASKS) { return queries(first_row + task / DEPTH_QUADS * 4u, kv_head, i); }
    return four_keys(kv_row, start + (task - QUERY_TASKS) / DEPTH_QUADS * 4u, seen, kv_head, i);
}

fn put(task: u32, four: mat4x4<f32>) {
    if (task >= TASKS) { return; }
    let is_key = task >= QUERY_TASKS;
    let apart = select(ROW_QUADS, 16u, is_key);
    let first = select(task / DEPTH_QUADS, KEY_STAGE + (task - QUERY_TASKS) / DEPTH_QUADS, is_key);
    let at = first + task % DEPTH_QUADS * 4u * apart;
    stage[at] = four[0];
    stage[at + apart] = four[1];
    stage[at + 2u * apart] = four[2];
    stage[at + 3u * apart] = four[3];
}

// The maximum of the eight entries from ``at`` on, ROW_QUADS apart.
fn eight_top(at: u32) -> vec4<f32> {
    return max(max(max(stage[at], stage[at + ROW_QUADS]), max(stage[at + 2u * ROW_QUADS], stage[at + 3u * ROW_QUADS])),
        max(max(stage[at + 4u * ROW_QUADS], stage[at + 5u * ROW_QUADS]),
            max(stage[at + 6u * ROW_QUADS], stage[at + 7u * ROW_QUADS])));
}

fn eight_sum(at: u32) -> vec4<f32> {
    return ((stage[at] + stage[at + ROW_QUADS]) + (stage[at + 2u * ROW_QUADS] + stage[at + 3u * ROW_QUADS]))
        + ((stage[at + 4u * ROW_QUADS] + stage[at + 5u * ROW_QUADS])
            + (stage[at + 6u * ROW_QUADS] + stage[at + 7u * ROW_QUADS]));
}

// What a sum made under the maximum ``before`` is worth under ``after``: exactly all of it if nothing changed.
fn worth(before: vec4<f32>, after: vec4<f32>) -> vec4<f32> {
    return select(exp(before - after), vec4<f32>(1.0), before == after);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group_id: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    // The last columns see the most keys: they start first.
    let first_row = (groups.x - 1u - group_id.x) * ROW_QUADS * 4u;
    let kv_head = group_id.y;
    let last_column = column_of(first_row + ROW_QUADS * 4u - 1u);
    let kv_row = columns[column_of(first_row)].kv_row;
    var seen = 0u;
    for (var c = column_of(first_row); c <= last_column; c++) { seen = max(seen, columns[c].position + 1u); }

    let key_quad = thread % 16u;
    let score_row = thread / 16u;
    let soft_row = thread % ROW_QUADS;
    let soft_key = thread / ROW_QUADS * 8u;
    let out_row = thread / OUT_THREADS;
    let out_quad = thread % OUT_THREADS;
    var soft_peak = vec4<f32>(-3.0e38);
    let soft_positions = positions(first_row + soft_row * 4u);
$score_positions
$zero
    for (var start = 0u; start < seen; start += 64u) {
$zero_scores
        // What the next step needs is fetched while this one is computed.
$fetch_first
        for (var depth = 0u; depth < QUADS; depth += DEPTH_QUADS) {
            workgroupBarrier();
$stage_scores
            workgroupBarrier();
$fetch_next
            for (var k = 0u; k < DEPTH_QUADS * 4u; k++) {
                let key = stage[KEY_STAGE + k * 16u + key_quad];
$score
            }
        }
$fetch_values
$store_scores
        workgroupBarrier();
        if (soft_key < 64u) {
            var top = weights[soft_key * ROW_QUADS + soft_row];
            for (var i = 1u; i < 8u; i++) { top = max(top, weights[(soft_key + i) * ROW_QUADS + soft_row]); }
            stage[soft_key / 8u * ROW_QUADS + soft_row] = top;
        }
        workgroupBarrier();
$raise_top
        if (soft_key < 64u) {
            soft_peak = max(soft_peak, eight_top(soft_row));
            var sum = vec4<f32>(0.0);
            for (var i = 0u; i < 8u; i++) {
                let at = (soft_key + i) * ROW_QUADS + soft_row;
                let seen_by = vec4<u32>(start + soft_key + i) <= soft_positions;
                let weight = select(vec4<f32>(0.0), exp(weights[at] - soft_peak), seen_by);
                weights[at] = weight;
                sum += weight;
            }
            stage[8u * ROW_QUADS + soft_key / 8u * ROW_QUADS + soft_row] = sum;
        }
        workgroupBarrier();
$total
        for (var from_key = 0u; from_key < 64u; from_key += STAGED) {
            workgroupBarrier();
$stage_values
            workgroupBarrier();
$fetch_next_values
            for (var k = 0u; k < STAGED; k++) {
$weigh
            }
        }
    }
$store
}
