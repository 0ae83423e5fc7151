fn ints(unit: u32) -> array<vec4<u32>, 2> {
    return nibbles(quants[unit]);
}

fn scales(unit: u32) -> vec4<f32> {
    let pair = unpack2x16float(extra[unit]);
    return vec4<f32>(pair.x, 0.0, pair.y, 0.0);
}
