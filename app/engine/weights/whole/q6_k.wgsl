// Four two-bit numbers a byte, as 0, 16, 32 or 48 in the bytes of four words.
fn upper(bits: u32) -> vec4<u32> {
    let b = vec4<u32>(bits, bits >> 8u, bits >> 16u, bits >> 24u) & vec4<u32>(255u);
    let spread = (b & vec4<u32>(3u)) | ((b & vec4<u32>(12u)) << vec4<u32>(6u))
        | ((b & vec4<u32>(48u)) << vec4<u32>(12u)) | ((b & vec4<u32>(192u)) << vec4<u32>(18u));
    return spread << vec4<u32>(4u);
}

fn signed_byte(word: u32) -> f32 {
    return f32(bitcast<i32>(word << 24u) >> 24u);
}

fn ints(unit: u32) -> array<vec4<u32>, 2> {
    let low = nibbles(quants[unit]);
    return array<vec4<u32>, 2>(low[0] | upper(extra[2u * unit]), low[1] | upper(extra[2u * unit + 1u]));
}

fn scales(unit: u32) -> vec4<f32> {
    let small = short_at(2u * ALL_UNITS, unit);
    let d = half_at(2u * ALL_UNITS + ((ALL_UNITS + 1u) >> 1u), unit >> 3u);
    let first = d * signed_byte(small);
    let last = d * signed_byte(small >> 8u);
    return vec4<f32>(first, last, -32.0 * first, -32.0 * last);
}
