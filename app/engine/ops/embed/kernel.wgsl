// h[c] = row `token` of the embedding, one thread a unit of 32 values.
$column
override UNITS: u32;
override ALL_UNITS: u32;
override STRIDE: u32;
override FIRST: u32;
override ROWS: u32;

@group(0) @binding(0) var<storage, read> columns: array<Column>;
@group(0) @binding(1) var<storage, read_write> h: array<vec4<f32>>;
$weights
$reader

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let row = columns[id.y].token - FIRST;
    if (id.x >= UNITS || row >= ROWS) { return; }
    let unit = row * UNITS + id.x;
    let at = id.y * STRIDE + id.x * 8u;
$store
}
