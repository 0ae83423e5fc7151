fn quarter(unit: u32, j: u32) -> array<vec4<f32>, 2> {
    let d = half_at(0u, unit);
    let m = -8.0 * d;
    let w = word(unit, j);
    return array<vec4<f32>, 2>(scaled(low(w), d, m), scaled(high(w), d, m));
}
