// Four two-bit numbers of one byte as 0, 16, 32 or 48.
fn upper(byte: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(byte, byte >> 2u, byte >> 4u, byte >> 6u) & vec4<u32>(3u)) << vec4<u32>(4u));
}

fn signed_byte(word: u32) -> f32 {
    return f32(bitcast<i32>(word << 24u) >> 24u);
}

fn unit_weights(unit: u32) -> array<vec4<f32>, 8> {
    let h0 = extra[unit * 2u];
    let h1 = extra[unit * 2u + 1u];
    let scales = short_at(2u * ALL_UNITS, unit);
    let super_scale = half_at(2u * ALL_UNITS + ((ALL_UNITS + 1u) >> 1u), unit >> 3u);
    let d0 = super_scale * signed_byte(scales);
    let d1 = super_scale * signed_byte(scales >> 8u);
    let m0 = -32.0 * d0;
    let m1 = -32.0 * d1;
    let w = quants[unit];
    return array<vec4<f32>, 8>(
        scaled(low(w.x) + upper(h0), d0, m0), scaled(low(w.y) + upper(h0 >> 8u), d0, m0),
        scaled(low(w.z) + upper(h0 >> 16u), d0, m0), scaled(low(w.w) + upper(h0 >> 24u), d0, m0),
        scaled(high(w.x) + upper(h1), d1, m1), scaled(high(w.y) + upper(h1 >> 8u), d1, m1),
        scaled(high(w.z) + upper(h1 >> 16u), d1, m1), scaled(high(w.w) + upper(h1 >> 24u), d1, m1));
}
