fn quarter(unit: u32, j: u32) -> array<vec4<f32>, 2> {
    let h = extra[unit];
    let sm = short_at(ALL_UNITS, unit);
    let dm = unpack2x16float(extra[ALL_UNITS + ((ALL_UNITS + 1u) >> 1u) + (unit >> 3u)]);
    let d = dm.x * f32(sm & 0xffu);
    let m = -(dm.y * f32(sm >> 8u));
    let w = word(unit, j);
    return array<vec4<f32>, 2>(scaled(low(w) + fifth(h >> (4u * j)), d, m), scaled(high(w) + fifth(h >> (16u + 4u * j)), d, m));
}
