fn half_at(base: u32, index: u32) -> f32 {
    return unpack2x16float(extra[base + (index >> 1u)])[index & 1u];
}

fn short_at(base: u32, index: u32) -> u32 {
    return (extra[base + (index >> 1u)] >> ((index & 1u) * 16u)) & 0xffffu;
}

fn nibbles(w: vec4<u32>) -> array<vec4<u32>, 2> {
    return array<vec4<u32>, 2>(w & vec4<u32>(0x0f0f0f0fu), (w >> vec4<u32>(4u)) & vec4<u32>(0x0f0f0f0fu));
}

// Sixteen bits, value j in bit j, as 16 or 0 in the bytes of four words.
fn fifths(bits: u32) -> vec4<u32> {
    let each = vec4<u32>(bits, bits >> 4u, bits >> 8u, bits >> 12u) & vec4<u32>(15u);
    return ((each * 0x00204081u) & vec4<u32>(0x01010101u)) << vec4<u32>(4u);
}
