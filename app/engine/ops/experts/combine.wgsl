// h[c] += the weighted outputs of its experts in slot order, then the shared expert's.
override SIZE: u32;
override USED: u32;
override SLOTS: u32;
override STRIDE: u32;
override H_STRIDE: u32;
override SHARED_STRIDE: u32 = 0u;
$route

@group(0) @binding(0) var<storage, read> outputs: array<f32>;
@group(0) @binding(1) var<storage, read_write> h: array<f32>;
@group(0) @binding(2) var<storage, read> routes: array<Route>;
$shared_binding

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= SIZE) { return; }
    var total = 0.0;
    for (var k = 0u; k < USED; k++) {
        let value = outputs[(id.y * USED + k) * STRIDE + id.x];
        total = fma(routes[id.y * SLOTS + k].weight, value, total);
    }
    let at = id.y * H_STRIDE + id.x;
    let sum = h[at] + (total);
    h[at] = $result;
}
