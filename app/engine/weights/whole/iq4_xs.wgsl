fn ints(unit: u32) -> array<vec4<u32>, 2> {
    let codes = nibbles(quants[unit]);
    return array<vec4<u32>, 2>(looked_up(codes[0]), looked_up(codes[1]));
}

fn scales(unit: u32) -> vec4<f32> {
    let small = f32(bitcast<i32>(extra[unit >> 2u] << (24u - 8u * (unit & 3u))) >> 24u);
    return vec4<f32>(half_at(ALL_UNITS >> 2u, unit >> 3u) * small, 0.0, 0.0, 0.0);
}
