// Prompt columns in tiles of $rows rows x $columns columns: eight rows a thread, times four columns for
// each 32 of the tile. k ascends with one accumulator an output, as in the narrow tile: the same bits.
const HALF_QUADS = ${rows}u / 8u;
const ROW_QUADS = ${rows}u / 4u;
const COL_QUADS = ${columns}u / 4u;
$sizes

$bindings
// Four rows, or four columns, an entry: [k][ROW_QUADS] and [k][COL_QUADS].
var<workgroup> tile_w: array<vec4<f32>, 32u * ROW_QUADS>;
var<workgroup> tile_x: array<vec4<f32>, 32u * COL_QUADS>;

$reader
$declarations

@compute @workgroup_size($rows)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let first_row = group.x * ${rows}u;
$place
    let quad = thread >> 2u;
    let j = thread & 3u;
    let row_0 = (origin + min(first_row + quad * 4u, ROWS - 1u)) * UNITS;
    let row_1 = (origin + min(first_row + quad * 4u + 1u, ROWS - 1u)) * UNITS;
    let row_2 = (origin + min(first_row + quad * 4u + 2u, ROWS - 1u)) * UNITS;
    let row_3 = (origin + min(first_row + quad * 4u + 3u, ROWS - 1u)) * UNITS;
    let x_quad = thread >> 3u;
    let x_k = thread & 7u;
    let from_0 = x_row(first_col + x_quad * 4u) * X_STRIDE + x_k;
    let from_1 = x_row(first_col + x_quad * 4u + 1u) * X_STRIDE + x_k;
    let from_2 = x_row(first_col + x_quad * 4u + 2u) * X_STRIDE + x_k;
    let from_3 = x_row(first_col + x_quad * 4u + 3u) * X_STRIDE + x_k;
    let r = thread % HALF_QUADS;
    let c = thread / HALF_QUADS;
$zero
    for (var u = 0u; u < UNITS; u++) {
        let w_0 = quarter(row_0 + u, j);
        let w_1 = quarter(row_1 + u, j);
        let w_2 = quarter(row_2 + u, j);
        let w_3 = quarter(row_3 + u, j);
$stage_w
        let x_0 = x[from_0 + u * 8u];
        let x_1 = x[from_1 + u * 8u];
        let x_2 = x[from_2 + u * 8u];
        let x_3 = x[from_3 + u * 8u];
$stage_x
        workgroupBarrier();
        for (var k = 0u; k < 32u; k++) {
            let wa = tile_w[k * ROW_QUADS + r];
            let wb = tile_w[k * ROW_QUADS + HALF_QUADS + r];
$load_x
$accumulate
        }
        workgroupBarrier();
    }
$store
}
