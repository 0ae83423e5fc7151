fn two_bits(word: u32, j: u32) -> vec4<f32> {
    return vec4<f32>(unpack4xU8((word >> (2u * j)) & 0x03030303u));
}

fn quarter(unit: u32, j: u32) -> array<vec4<f32>, 2> {
    let small = short_at(0u, unit);
    let dm = unpack2x16float(extra[(ALL_UNITS >> 1u) + (unit >> 3u)]);
    let first = two_bits(word(unit, 0u), j);
    let last = two_bits(word(unit, 1u), j);
    return array<vec4<f32>, 2>(
        scaled(first, dm.x * f32(small & 15u), -(dm.y * f32((small >> 4u) & 15u))),
        scaled(last, dm.x * f32((small >> 8u) & 15u), -(dm.y * f32(small >> 12u))));
}
