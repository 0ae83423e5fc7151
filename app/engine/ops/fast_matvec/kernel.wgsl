// Step columns in whole numbers: a lane takes every LANES-th unit of its rows, multiplies the int8 halves
// of weights and inputs, and adds the scaled sums in one accumulator; then one fixed tree over the lanes.
const LANES = ${lanes}u;
const TEAMS = ${teams}u;
const COLS = ${cols}u;
const ROWS_EACH = ${rows_each}u;
override ROWS: u32;
override UNITS: u32;
override ALL_UNITS: u32;
override Y_STRIDE: u32;
override Y_FIRST: u32 = 0u;
override WEIGHT_STRIDE: u32 = 0u;
override WEIGHT_FIRST: u32 = 0u;

$declarations
$bindings
$shared

$reader

fn dot_of(w: vec4<u32>, v: vec4<u32>) -> i32 {
    return dot4I8Packed(w.x, v.x) + dot4I8Packed(w.y, v.y) + dot4I8Packed(w.z, v.z) + dot4I8Packed(w.w, v.w);
}

@compute @workgroup_size(LANES, TEAMS)
fn main(@builtin(local_invocation_id) local: vec3<u32>, @builtin(workgroup_id) group: vec3<u32>,
        @builtin(num_workgroups) groups: vec3<u32>) {
    let lane = local.x;
    let team = local.y;
    let first_row = ((group.y * groups.x + group.x) * TEAMS + team) * ROWS_EACH;
$place
$rows
$zero
$sum
$reduce
    if (lane == 0u) {
$write
    }
$round
}
