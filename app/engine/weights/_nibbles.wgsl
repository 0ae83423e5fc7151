fn half_at(base: u32, index: u32) -> f32 {
    return unpack2x16float(extra[base + (index >> 1u)])[index & 1u];
}

fn short_at(base: u32, index: u32) -> u32 {
    return (extra[base + (index >> 1u)] >> ((index & 1u) * 16u)) & 0xffffu;
}

fn low(word: u32) -> vec4<f32> {
    return vec4<f32>(unpack4xU8(word & 0x0f0f0f0fu));
}

fn high(word: u32) -> vec4<f32> {
    return vec4<f32>(unpack4xU8((word >> 4u) & 0x0f0f0f0fu));
}

// Bits 0..3 of `bits` as 16 or 0, to be added to four nibbles.
fn fifth(bits: u32) -> vec4<f32> {
    return vec4<f32>((vec4<u32>(bits, bits >> 1u, bits >> 2u, bits >> 3u) & vec4<u32>(1u)) << vec4<u32>(4u));
}

fn scaled(q: vec4<f32>, scale: f32, offset: f32) -> vec4<f32> {
    return fma(q, vec4<f32>(scale), vec4<f32>(offset));
}
