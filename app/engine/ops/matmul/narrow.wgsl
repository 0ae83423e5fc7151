// Prompt columns: y[c][row] = sum over k of W[row][k] * x[c][k], in tiles of 64 rows x 16 columns.
// k ascends with one accumulator an output, so that bits depend neither on the number of columns
// nor on where a chunk ends.
const COLS_EACH = 2u;
const TILE_COLS = 16u;
$sizes

$bindings
var<workgroup> tile_w: array<f32, 2048>;
var<workgroup> tile_x: array<f32, 512>;

$reader
$declarations

fn put(k: u32, row: u32, v: vec4<f32>) {
    tile_w[k * 64u + row] = v.x;
    tile_w[(k + 1u) * 64u + row] = v.y;
    tile_w[(k + 2u) * 64u + row] = v.z;
    tile_w[(k + 3u) * 64u + row] = v.w;
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let first_row = group.x * 64u;
$place
    let my_row = (origin + min(first_row + thread, ROWS - 1u)) * UNITS;
    let x_col = thread >> 3u;
    let x_k = thread & 7u;
    let x_from_0 = x_row(first_col + x_col) * X_STRIDE + x_k;
    let x_from_1 = x_row(first_col + x_col + 8u) * X_STRIDE + x_k;
    let r = thread & 7u;
    let c = thread >> 3u;
$zero
    for (var u = 0u; u < UNITS; u++) {
$stage_w
$stage_x
        workgroupBarrier();
        for (var k = 0u; k < 32u; k++) {
            let wa = vec4<f32>(tile_w[k * 64u + r], tile_w[k * 64u + 8u + r],
                               tile_w[k * 64u + 16u + r], tile_w[k * 64u + 24u + r]);
            let wb = vec4<f32>(tile_w[k * 64u + 32u + r], tile_w[k * 64u + 40u + r],
                               tile_w[k * 64u + 48u + r], tile_w[k * 64u + 56u + r]);
$accumulate
        }
        workgroupBarrier();
    }
$store
}
