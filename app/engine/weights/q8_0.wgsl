fn bytes(packed: u32, d: f32) -> vec4<f32> {
    return vec4<f32>(unpack4xI8(packed)) * d;
}

fn quarter(unit: u32, j: u32) -> array<vec4<f32>, 2> {
    let d = half_at(0u, unit);
    return array<vec4<f32>, 2>(bytes(word(unit, j), d), bytes(word(unit, 4u + j), d));
}
