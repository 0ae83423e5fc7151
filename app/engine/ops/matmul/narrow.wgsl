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

fn put(k: u32, row: u32, v: vec4<f32>) {
    tile_w[k * 64u + row] = v.x;
    tile_w[(k + 1u) * 64u + row] = v.y;
    tile_w[(k + 2u) * 64u + row] = v.z;
    tile_w[(k + 3u) * 64u + row] = v.w;
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let first_row = group.x * 64u;
    let first_col = group.y * TILE_COLS;
    let my_row = min(first_row + thread, ROWS - 1u) * UNITS;
    let r = thread & 7u;
    let c = thread >> 3u;
$zero
    for (var u = 0u; u < UNITS; u++) {
$stage_w
        for (var i = 0u; i < COLS_EACH; i++) {
            let at = i * 64u + thread;
            let col = at >> 3u;
            let k = at & 7u;
            let v = x[(first_col + col) * X_STRIDE + u * 8u + k];
            tile_x[(k * 4u) * TILE_COLS + col] = v.x;
            tile_x[(k * 4u + 1u) * TILE_COLS + col] = v.y;
            tile_x[(k * 4u + 2u) * TILE_COLS + col] = v.z;
            tile_x[(k * 4u + 3u) * TILE_COLS + col] = v.w;
        }
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
