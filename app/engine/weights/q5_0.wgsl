fn quarter(unit: u32, j: u32) -> array<vec4<f32>, 2> {
    let h = extra[unit];
    let d = half_at(ALL_UNITS, unit);
    let m = -16.0 * d;
    let w = word(unit, j);
    return array<vec4<f32>, 2>(scaled(low(w) + fifth(h >> (4u * j)), d, m), scaled(high(w) + fifth(h >> (16u + 4u * j)), d, m));
}
