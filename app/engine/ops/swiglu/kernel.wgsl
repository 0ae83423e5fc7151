// y[c][i] = silu(x[c][i]) * x[c][SIZE + i]
override SIZE: u32;
override X_STRIDE: u32;
override Y_STRIDE: u32;

@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(128)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < SIZE) {
        let gate = x[id.y * X_STRIDE + id.x];
        y[id.y * Y_STRIDE + id.x] = gate / (1.0 + exp(-gate)) * x[id.y * X_STRIDE + SIZE + id.x];
    }
}
