fn bytes(word: u32, d: f32) -> vec4<f32> {
    return vec4<f32>(unpack4xI8(word)) * d;
}

fn unit_weights(unit: u32) -> array<vec4<f32>, 8> {
    let d = half_at(0u, unit);
    let a = quants[unit * 2u];
    let b = quants[unit * 2u + 1u];
    return array<vec4<f32>, 8>(
        bytes(a.x, d), bytes(a.y, d), bytes(a.z, d), bytes(a.w, d),
        bytes(b.x, d), bytes(b.y, d), bytes(b.z, d), bytes(b.w, d));
}
