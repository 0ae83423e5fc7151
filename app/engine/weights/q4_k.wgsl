fn quarter(unit: u32, j: u32) -> array<vec4<f32>, 2> {
    let sm = short_at(0u, unit);
    let dm = unpack2x16float(extra[((ALL_UNITS + 1u) >> 1u) + (unit >> 3u)]);
    let d = dm.x * f32(sm & 0xffu);
    let m = -(dm.y * f32(sm >> 8u));
    let w = word(unit, j);
    return array<vec4<f32>, 2>(scaled(low(w), d, m), scaled(high(w), d, m));
}
