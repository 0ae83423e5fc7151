// Prompt columns in tiles of 128 rows x 64 columns, eight by eight a thread, 24 KB of workgroup memory.
// k ascends with one accumulator an output, as in the narrow tile: the same bits.
const TILE_ROWS = 32u;
const TILE_COLS = 16u;
$sizes

$bindings
// Four rows, or four columns, an entry: [k][TILE_ROWS] and [k][TILE_COLS].
var<workgroup> tile_w: array<vec4<f32>, 1024>;
var<workgroup> tile_x: array<vec4<f32>, 512>;

$reader

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let first_row = group.x * 128u;
    let first_col = group.y * 64u;
    let quad = thread >> 2u;
    let j = thread & 3u;
    let row_0 = min(first_row + quad * 4u, ROWS - 1u) * UNITS;
    let row_1 = min(first_row + quad * 4u + 1u, ROWS - 1u) * UNITS;
    let row_2 = min(first_row + quad * 4u + 2u, ROWS - 1u) * UNITS;
    let row_3 = min(first_row + quad * 4u + 3u, ROWS - 1u) * UNITS;
    let x_quad = thread >> 3u;
    let x_k = thread & 7u;
    let x_from = (first_col + x_quad * 4u) * X_STRIDE + x_k;
    let r = thread & 15u;
    let c = thread >> 4u;
$zero
    for (var u = 0u; u < UNITS; u++) {
        let w_0 = quarter(row_0 + u, j);
        let w_1 = quarter(row_1 + u, j);
        let w_2 = quarter(row_2 + u, j);
        let w_3 = quarter(row_3 + u, j);
$stage_w
        let x_0 = x[x_from + u * 8u];
        let x_1 = x[x_from + X_STRIDE + u * 8u];
        let x_2 = x[x_from + 2u * X_STRIDE + u * 8u];
        let x_3 = x[x_from + 3u * X_STRIDE + u * 8u];
$stage_x
        workgroupBarrier();
        for (var k = 0u; k < 32u; k++) {
            let wa = tile_w[k * TILE_ROWS + r];
            let wb = tile_w[k * TILE_ROWS + 16u + r];
            let xa = tile_x[k * TILE_COLS + c];
            let xb = tile_x[k * TILE_COLS + 8u + c];
$accumulate
        }
        workgroupBarrier();
    }
$store
}
