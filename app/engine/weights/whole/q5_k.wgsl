fn ints(unit: u32) -> array<vec4<u32>, 2> {
    let low = nibbles(quants[unit]);
    let bits = extra[unit];
    return array<vec4<u32>, 2>(low[0] | fifths(bits), low[1] | fifths(bits >> 16u));
}

fn scales(unit: u32) -> vec4<f32> {
    let small = short_at(ALL_UNITS, unit);
    let pair = unpack2x16float(extra[ALL_UNITS + ((ALL_UNITS + 1u) >> 1u) + (unit >> 3u)]);
    return vec4<f32>(pair.x * f32(small & 0xffu), 0.0, -pair.y * f32(small >> 8u), 0.0);
}
