// One value head of one sequence: replays the columns that were accepted, then computes its new ones.
// A thread holds half a column of the state S[i][j], SIZE / 2 rows i of one j, in registers.
$column
const SIZE = ${size}u;
const GROUPS = SIZE / 4u;
const THREADS = 2u * SIZE;
const BLOCK = ${block}u;
const LANES = ${lanes}u;
// Prompt columns are committed at once; step columns when a later pass replays them.
const COMMIT = ${commit};
override KEY_HEADS: u32;
override VALUE_HEADS: u32;
override RING: u32;
override STRIDE: u32;
override OUT_STRIDE: u32;
override EPS: f32;

@group(0) @binding(0) var<storage, read> columns: array<Column>;
@group(0) @binding(1) var<storage, read> mixed: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> ring: array<vec4<f32>>;
@group(0) @binding(3) var<storage, read_write> ring_gates: array<f32>;
@group(0) @binding(4) var<storage, read_write> matrix: array<vec4<f32>>;
// The norm's weights, A and dt of each value head; then the taps.
@group(0) @binding(5) var<storage, read> weights: array<vec4<f32>>;
$outs
// The convolved queries, keys and values of a block's columns, and the head's outputs for them.
var<workgroup> tile: array<vec4<f32>, BLOCK * 3u * GROUPS>;
var<workgroup> outputs: array<f32, BLOCK * SIZE>;
var<workgroup> dots: array<f32, BLOCK * 3u * LANES>;
// Of each column: decay, share, query scale, key scale, and query times key.
var<workgroup> factors: array<f32, BLOCK * 5u>;
// What each half of the rows read of S with the key and the query; two sets, one in use.
var<workgroup> reads: array<vec2<f32>, 2u * THREADS>;

fn ring_row(run: Column, at: i32) -> u32 {
    return run.state * RING + u32(at) % RING;
}

// Four channels of the projection at an absolute position; there is nothing before position 0.
fn raw(run: Column, first: u32, at: i32, channel: u32) -> vec4<f32> {
    if (at < 0) { return vec4<f32>(0.0); }
    if (at >= i32(run.position)) {
        return mixed[(first + u32(at) - run.position) * STRIDE + channel];
    }
    return ring[ring_row(run, at) * ((2u * KEY_HEADS + VALUE_HEADS) * GROUPS) + channel];
}

fn weight(tap: u32, channel: u32) -> vec4<f32> {
    let first = GROUPS + (2u * VALUE_HEADS + 3u) / 4u;
    return weights[first + tap * ((2u * KEY_HEADS + VALUE_HEADS) * GROUPS) + channel];
}

fn parameter(i: u32) -> f32 {
    return weights[GROUPS + i / 4u][i % 4u];
}

fn mixed_value(column: u32, at: u32) -> f32 {
    return mixed[column * STRIDE + at / 4u][at % 4u];
}

// beta before its sigmoid and alpha of a column, kept in the ring for its replay.
fn gates(run: Column, first: u32, at: i32, head: u32) -> vec2<f32> {
    if (at >= i32(run.position)) {
        let base = (2u * KEY_HEADS + 2u * VALUE_HEADS) * SIZE + head;
        let column = first + u32(at) - run.position;
        return vec2<f32>(mixed_value(column, base), mixed_value(column, base + VALUE_HEADS));
    }
    let base = ring_row(run, at) * 2u * VALUE_HEADS + head;
    return vec2<f32>(ring_gates[base], ring_gates[base + VALUE_HEADS]);
}

$shuffles

fn softplus(v: f32) -> f32 {
    return select(log(1.0 + exp(v)), v, v > 20.0);
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let head = group.x;
    let first = group.y;
    let run = columns[first];
    if ((run.flags & 1u) == 0u) { return; }
    let key_head = head % KEY_HEADS;
    let j = thread % SIZE;
    let half = thread / SIZE;
    let start = i32(run.position) - i32(run.replay);
    let total = run.replay + run.count;
    let begun = start > 0;
    let lasting = run.live != 0u;
    let matrix_at = ((run.state * VALUE_HEADS + head) * GROUPS + half * (GROUPS / 2u)) * SIZE + j;
$load
    for (var from_column = 0u; from_column < total; from_column += BLOCK) {
        let count = min(BLOCK, total - from_column);
        for (var t = thread; t < count * 3u * GROUPS; t += THREADS) {
            let at = start + i32(from_column + t / (3u * GROUPS));
            let part = t / GROUPS % 3u;
            let home = select(part * KEY_HEADS + key_head, 2u * KEY_HEADS + head, part == 2u);
            let channel = home * GROUPS + t % GROUPS;
            let own = raw(run, first, at, channel);
$convolve
            tile[t] = y / (1.0 + exp(-y));
            let writer = part == 2u || head < KEY_HEADS;
            if (!COMMIT && lasting && writer && at >= i32(run.position)) {
                ring[ring_row(run, at) * ((2u * KEY_HEADS + VALUE_HEADS) * GROUPS) + channel] = own;
            }
        }
        workgroupBarrier();
        for (var t = thread; t < count * 3u * LANES; t += THREADS) {
            let column = t / (3u * LANES) * 3u * GROUPS;
            let kind = t / LANES % 3u;
            let a = column + select(0u, GROUPS, kind == 1u);
            let b = column + select(GROUPS, 0u, kind == 0u);
            var sum = 0.0;
            for (var g = t % LANES; g < GROUPS; g += LANES) { sum += dot(tile[a + g], tile[b + g]); }
            dots[t] = sum;
        }
        workgroupBarrier();
        for (var c = thread; c < count; c += THREADS) {
            let at = start + i32(from_column + c);
            let gate = gates(run, first, at, head);
            let dots_at = c * 3u * LANES;
            var queries = 0.0;
            var keys = 0.0;
            var both = 0.0;
$sums
            factors[c * 5u] = exp(parameter(head) * softplus(gate.y + parameter(VALUE_HEADS + head)));
            factors[c * 5u + 1u] = 1.0 / (1.0 + exp(-gate.x));
            factors[c * 5u + 2u] = 1.0 / (max(sqrt(queries), EPS) * sqrt(f32(SIZE)));
            factors[c * 5u + 3u] = 1.0 / max(sqrt(keys), EPS);
            factors[c * 5u + 4u] = both;
            if (!COMMIT && lasting && at >= i32(run.position)) {
                let to = ring_row(run, at) * 2u * VALUE_HEADS + head;
                ring_gates[to] = gate.x;
                ring_gates[to + VALUE_HEADS] = gate.y;
            }
        }
        workgroupBarrier();
        for (var c = 0u; c < count; c++) {
            let decay = factors[c * 5u];
            let share = factors[c * 5u + 1u];
            let query_scale = factors[c * 5u + 2u];
            let key_scale = factors[c * 5u + 3u];
            let both = factors[c * 5u + 4u];
            let query_at = c * 3u * GROUPS + half * (GROUPS / 2u);
            let key_at = query_at + GROUPS;
            var read = vec4<f32>(0.0);
            var seen = vec4<f32>(0.0);
$sweep
            let side = (c & 1u) * THREADS;
            reads[side + thread] = vec2<f32>((read.x + read.y) + (read.z + read.w), (seen.x + seen.y) + (seen.z + seen.w));
            workgroupBarrier();
            let joined = reads[side + j] + reads[side + SIZE + j];
            let value = tile[c * 3u * GROUPS + 2u * GROUPS + j / 4u][j % 4u];
            let delta = share * (value - joined.x * key_scale);
            let change = delta * key_scale;
$update
            if (half == 0u) { outputs[c * SIZE + j] = query_scale * fma(change, both, joined.y); }
            let last = from_column + c + 1u == select(run.replay, total, COMMIT);
            if (last && lasting) {
$store
            }
        }
        workgroupBarrier();
        for (var t = thread; t < count * LANES; t += THREADS) {
            let base = t / LANES * SIZE;
            var sum = 0.0;
            for (var i = t % LANES; i < SIZE; i += LANES) { sum = fma(outputs[base + i], outputs[base + i], sum); }
            dots[t] = sum;
        }
        workgroupBarrier();
        for (var from_quad = 0u; from_quad < count * GROUPS; from_quad += THREADS) {
            let t = from_quad + thread;
            let c = min(t / GROUPS, count - 1u);
            let i = t % GROUPS;
            let inside = t < count * GROUPS && from_column + c >= run.replay;
            var squares = 0.0;
            for (var lane = 0u; lane < LANES; lane++) { squares += dots[c * LANES + lane]; }
            let column = first + max(from_column + c, run.replay) - run.replay;
            let z = mixed[column * STRIDE + (2u * KEY_HEADS + VALUE_HEADS + head) * GROUPS + i];
            let at = c * SIZE + 4u * i;
            let output = vec4<f32>(outputs[at], outputs[at + 1u], outputs[at + 2u], outputs[at + 3u]);
            let normed = output * inverseSqrt(squares / f32(SIZE) + EPS) * weights[i];
            let result = normed * (z / (vec4<f32>(1.0) + exp(-z)));
            let to = column * OUT_STRIDE + head * GROUPS + i;
$write
        }
        workgroupBarrier();
    }
}
