// y[c] = x[c] * rsqrt(mean(x[c]^2) + eps) * weights, one workgroup a column.
override X_STRIDE: u32;
override Y_STRIDE: u32;
override Y_FIRST: u32;
override SIZE: f32;
override EPS: f32;

$binding
var<workgroup> sums: array<f32, 128>;

@compute @workgroup_size(128)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let from_x = group.x * X_STRIDE;
    let to_y = group.x * Y_STRIDE + Y_FIRST;
    var squares = vec4<f32>(0.0);
    for (var k = thread; k < X_STRIDE; k += 128u) {
        let v = $x[from_x + k];
        squares = fma(v, v, squares);
    }
    sums[thread] = (squares.x + squares.y) + (squares.z + squares.w);
    workgroupBarrier();
    for (var half = 64u; half > 0u; half >>= 1u) {
        if (thread < half) { sums[thread] += sums[thread + half]; }
        workgroupBarrier();
    }
    let inverse = inverseSqrt(sums[0] / SIZE + EPS);
    for (var k = thread; k < X_STRIDE; k += 128u) {
        y[to_y + k] = ($x[from_x + k] * inverse) * weights[k];
    }
}
