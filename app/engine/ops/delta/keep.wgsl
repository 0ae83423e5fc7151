// The projections of a prompt chunk's last positions into the ring, where the next pass finds its past.
$column
override KEY_HEADS: u32;
override VALUE_HEADS: u32;
override RING: u32;
override STRIDE: u32;
override GROUPS: u32;

@group(0) @binding(0) var<storage, read> columns: array<Column>;
@group(0) @binding(1) var<storage, read> mixed: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read_write> ring: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let run = columns[0];
    let channels = (2u * KEY_HEADS + VALUE_HEADS) * GROUPS;
    if (id.x >= channels || id.y >= run.count || run.live == 0u) { return; }
    let column = run.count - 1u - id.y;
    let row = run.state * RING + (run.position + column) % RING;
    ring[row * channels + id.x] = mixed[column * STRIDE + id.x];
}
