// The low bits of sixteen numbers, in the bytes of four words.
fn twos(w: u32) -> vec4<u32> {
    return vec4<u32>(w, w >> 2u, w >> 4u, w >> 6u) & vec4<u32>(0x03030303u);
}

// Their third bits, as 4 or 0.
fn thirds(bits: u32) -> vec4<u32> {
    return (vec4<u32>(bits, bits >> 1u, bits >> 2u, bits >> 3u) & vec4<u32>(0x01010101u)) << vec4<u32>(2u);
}

fn signed_byte(word: u32) -> f32 {
    return f32(bitcast<i32>(word << 24u) >> 24u);
}

// A 16-byte word holds two units.
fn ints(unit: u32) -> array<vec4<u32>, 2> {
    let both = quants[unit >> 1u];
    let w = select(both.xy, both.zw, (unit & 1u) == 1u);
    let bits = extra[unit];
    return array<vec4<u32>, 2>(twos(w.x) | thirds(bits), twos(w.y) | thirds(bits >> 4u));
}

fn scales(unit: u32) -> vec4<f32> {
    let small = short_at(ALL_UNITS, unit);
    let d = half_at(ALL_UNITS + (ALL_UNITS >> 1u), unit >> 3u);
    let first = d * signed_byte(small);
    let last = d * signed_byte(small >> 8u);
    return vec4<f32>(first, last, -4.0 * first, -4.0 * last);
}
