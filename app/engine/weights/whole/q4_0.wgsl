fn ints(unit: u32) -> array<vec4<u32>, 2> {
    return nibbles(quants[unit]);
}

fn scales(unit: u32) -> vec4<f32> {
    let d = half_at(0u, unit);
    return vec4<f32>(d, 0.0, -8.0 * d, 0.0);
}
