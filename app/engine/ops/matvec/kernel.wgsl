// Step columns: y[c][row] = sum over k of W[row][k] * x[c][k], for $cols columns a workgroup.
// A column's order of summation is the same at every width: lanes walk the row's quarter units,
// four accumulators each, then one fixed tree over the lanes.
const LANES = ${lanes}u;
const TEAMS = ${teams}u;
const PAIRS = ${pairs}u;
const COLS = ${cols}u;
const OUT_COLS = ${out_cols}u;
// Quarters of a unit a lane takes at a time, and how many such steps a unit has.
const GRAIN = ${grain}u;
const STEPS = 4u / GRAIN;
override ROWS: u32;
override UNITS: u32;
override ALL_UNITS: u32;
override X_STRIDE: u32;
override Y_STRIDE: u32;
override Y_FIRST: u32;
override SECOND: u32 = 0u;
override SIZE: f32 = 1.0;
override EPS: f32 = 0.0;
override WEIGHT_STRIDE: u32 = 0u;
override WEIGHT_FIRST: u32 = 0u;

$bindings
var<workgroup> sums: array<f32, ${shared}>;

$reader
$declarations

@compute @workgroup_size(LANES, TEAMS)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let lane = $lane;
    let team = local.y;
    let first = ((group.y * groups.x + group.x) * TEAMS + team) * ${rows_each}u;
$place
$norm
$rows
$zero
    for (var step = lane; step < UNITS * STEPS; step += LANES) {
        let unit = step / STEPS;
        let first_quarter = (step % STEPS) * GRAIN;
$accumulate
    }
$store_sums
    workgroupBarrier();
    for (var bits = ${lane_bits}u; bits > 0u; bits--) {
        let half = 1u << (bits - 1u);
        // All pairs' additions of a level are spread over the lanes.
        for (var i = lane; i < PAIRS * half; i += LANES) {
            let at = ((i >> (bits - 1u)) * TEAMS + team) * LANES + (i & (half - 1u));
            sums[at] += sums[at + half];
        }
        workgroupBarrier();
    }
    for (var p = lane; p < ${outputs}u; p += LANES) {
        let c = p % OUT_COLS;
        let row = first + p / OUT_COLS;
        if (row < ROWS) {
            let at = (out_column + c) * Y_STRIDE + Y_FIRST + row;
            let value = $value;
$epilogue
        }
    }
}
