fn ints(unit: u32) -> array<vec4<u32>, 2> {
    return nibbles(quants[unit]);
}

fn scales(unit: u32) -> vec4<f32> {
    let small = short_at(0u, unit);
    let pair = unpack2x16float(extra[((ALL_UNITS + 1u) >> 1u) + (unit >> 3u)]);
    return vec4<f32>(pair.x * f32(small & 0xffu), 0.0, -pair.y * f32(small >> 8u), 0.0);
}
