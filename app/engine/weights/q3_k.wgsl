// Values 4j to 4j + 3 of a half: two bits of each byte of `word`, and one of `bits` above them.
fn three_bits(word: u32, bits: u32, j: u32) -> vec4<f32> {
    return vec4<f32>(unpack4xU8(((word >> (2u * j)) & 0x03030303u) | (((bits >> j) & 0x01010101u) << 2u)));
}

fn signed_byte(word: u32) -> f32 {
    return f32(bitcast<i32>(word << 24u) >> 24u);
}

fn quarter(unit: u32, j: u32) -> array<vec4<f32>, 2> {
    let bits = extra[unit];
    let scales = short_at(ALL_UNITS, unit);
    let super_scale = half_at(ALL_UNITS + (ALL_UNITS >> 1u), unit >> 3u);
    let d0 = super_scale * signed_byte(scales);
    let d1 = super_scale * signed_byte(scales >> 8u);
    let first = three_bits(word(unit, 0u), bits, j);
    let last = three_bits(word(unit, 1u), bits >> 4u, j);
    return array<vec4<f32>, 2>(scaled(first, d0, -4.0 * d0), scaled(last, d1, -4.0 * d1));
}
