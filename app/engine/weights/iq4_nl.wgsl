fn quarter(unit: u32, j: u32) -> array<vec4<f32>, 2> {
    let d = half_at(0u, unit);
    let w = looked_up_halves(word(unit, j));
    return array<vec4<f32>, 2>(w[0] * d, w[1] * d);
}
