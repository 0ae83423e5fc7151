// Prompt columns in whole numbers, in tiles of 64 rows and a few units of k. Units ascend with one accumulator
// an output, so that bits depend neither on the number of columns, nor on the tile, nor on where a chunk ends.
const TILE = ${tile}u;
const DEPTH = ${depth}u;
const ROW_THREADS = ${row_threads}u;
override ROWS: u32;
override UNITS: u32;
override ALL_UNITS: u32;
override Y_STRIDE: u32;
override Y_FIRST: u32;

$bindings
// [unit][half][row or column]
var<workgroup> tile_w: array<vec4<u32>, DEPTH * 128u>;
var<workgroup> tile_x: array<vec4<u32>, DEPTH * 2u * TILE>;
var<workgroup> scales_w: array<$scale, DEPTH * 64u>;
var<workgroup> scales_x: array<$scale, DEPTH * TILE>;

$declarations
$reader

fn dot_of(w: vec4<u32>, v: vec4<u32>) -> i32 {
    return dot4I8Packed(w.x, v.x) + dot4I8Packed(w.y, v.y) + dot4I8Packed(w.z, v.z) + dot4I8Packed(w.w, v.w);
}

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let first_row = group.x * 64u;
$place
    // 32 neighbours take 8 rows and 4 columns: what they read of either is 128 bytes or less.
    let r = (thread & 7u) + 8u * ((thread >> 5u) % (ROW_THREADS / 8u));
    let c = ((thread >> 3u) & 3u) + 4u * ((thread >> 5u) / (ROW_THREADS / 8u));
    // Neighbours stage neighbouring units of a row or column.
    let part = thread % DEPTH;
    let mine = thread / DEPTH;
    let stages_x = mine < TILE;
    let my_col = x_row(min(first_col + mine, end_col - 1u)) * UNITS;
$my_rows
$zero
    var x_first = vec4<u32>(0u);
    var x_last = vec4<u32>(0u);
    var x_scale = $scale();
$fetched
$fetch_first
    for (var u = 0u; u < UNITS; u += DEPTH) {
$stage_w
        if (stages_x) {
            tile_x[2u * part * TILE + mine] = x_first;
            tile_x[(2u * part + 1u) * TILE + mine] = x_last;
            scales_x[part * TILE + mine] = x_scale;
        }
        workgroupBarrier();
        // The next units travel while these are multiplied.
$fetch_next
$multiply
        workgroupBarrier();
    }
$store
}
