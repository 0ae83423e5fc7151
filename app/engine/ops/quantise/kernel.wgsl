// Eight threads share a unit of 32 values of one column, a vector of four each.
override QUADS: u32;
override STRIDE: u32;
override SIZE: f32 = 1.0;
override EPS: f32 = 0.0;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> values: array<u32>;
@group(0) @binding(2) var<storage, read_write> unit_scales: array<vec4<f32>>;
$norm_binding
var<workgroup> joined: array<f32, 256>;

$join

// Past the end of a column all is zero.
fn quad(column: u32, at: u32) -> vec4<f32> {
    return select(vec4<f32>(0.0), x[column * STRIDE + min(at, QUADS - 1u)], at < QUADS);
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let at = group.x * 256u + thread;
    var v = quad(group.y, at);
$norm
    let to = group.y * QUADS + at;
$write
}
