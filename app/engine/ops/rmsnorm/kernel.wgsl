// y[c] = x[c] * rsqrt(mean(x[c]^2) + eps) * weights, one workgroup a column.
override STRIDE: u32;
override SIZE: f32;
override EPS: f32;

@group(0) @binding(0) var<storage, read> x: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> weights: array<vec4<f32>>;
var<workgroup> sums: array<f32, 128>;

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let base = group.x * STRIDE;
    var squares = vec4<f32>(0.0);
    for (var k = thread; k < STRIDE; k += 128u) {
        let v = x[base + k];
        squares = fma(v, v, squares);
    }
    sums[thread] = (squares.x + squares.y) + (squares.z + squares.w);
    workgroupBarrier();
    for (var half = 64u; half > 0u; half >>= 1u) {
        if (thread < half) { sums[thread] += sums[thread + half]; }
        workgroupBarrier();
    }
    let inverse = inverseSqrt(sums[0] / SIZE + EPS);
    for (var k = thread; k < STRIDE; k += 128u) {
        y[base + k] = (x[base + k] * inverse) * weights[k];
    }
}
