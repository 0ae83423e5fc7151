fn ints(unit: u32) -> array<vec4<u32>, 2> {
    let codes = nibbles(quants[unit]);
    return array<vec4<u32>, 2>(looked_up(codes[0]), looked_up(codes[1]));
}

fn scales(unit: u32) -> vec4<f32> {
    return vec4<f32>(half_at(0u, unit), 0.0, 0.0, 0.0);
}
