fn ints(unit: u32) -> array<vec4<u32>, 2> {
    let low = nibbles(quants[unit]);
    let bits = extra[unit];
    return array<vec4<u32>, 2>(low[0] | fifths(bits), low[1] | fifths(bits >> 16u));
}

fn scales(unit: u32) -> vec4<f32> {
    let d = half_at(ALL_UNITS, unit);
    return vec4<f32>(d, 0.0, -16.0 * d, 0.0);
}
