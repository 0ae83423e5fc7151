// Four two-bit numbers of one byte as 0, 16, 32 or 48.
fn upper(byte: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(byte, byte >> 2u, byte >> 4u, byte >> 6u) & vec4<u32>(3u)) << vec4<u32>(4u));
}

fn signed_byte(word: u32) -> f32 {
    return f32(bitcast<i32>(word << 24u) >> 24u);
}

fn quarter(unit: u32, j: u32) -> array<vec4<f32>, 2> {
    let scales = short_at(2u * ALL_UNITS, unit);
    let super_scale = half_at(2u * ALL_UNITS + ((ALL_UNITS + 1u) >> 1u), unit >> 3u);
    let d0 = super_scale * signed_byte(scales);
    let d1 = super_scale * signed_byte(scales >> 8u);
    let m0 = -32.0 * d0;
    let m1 = -32.0 * d1;
    let w = word(unit, j);
    return array<vec4<f32>, 2>(scaled(low(w) + upper(extra[unit * 2u] >> (8u * j)), d0, m0), scaled(high(w) + upper(extra[unit * 2u + 1u] >> (8u * j)), d1, m1));
}
