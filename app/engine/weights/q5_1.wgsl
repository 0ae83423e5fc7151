fn quarter(unit: u32, j: u32) -> array<vec4<f32>, 2> {
    let h = extra[unit];
    let dm = unpack2x16float(extra[ALL_UNITS + unit]);
    let d = dm.x;
    let m = dm.y;
    let w = word(unit, j);
    return array<vec4<f32>, 2>(scaled(low(w) + fifth(h >> (4u * j)), d, m), scaled(high(w) + fifth(h >> (16u + 4u * j)), d, m));
}
