fn quarter(unit: u32, j: u32) -> array<vec4<f32>, 2> {
    let small = f32(bitcast<i32>(extra[unit >> 2u] << (24u - 8u * (unit & 3u))) >> 24u);
    let d = half_at(ALL_UNITS >> 2u, unit >> 3u) * small;
    let w = looked_up_halves(word(unit, j));
    return array<vec4<f32>, 2>(w[0] * d, w[1] * d);
}
