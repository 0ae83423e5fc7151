// Bits `bit` of the bytes, each as 255 or 0.
fn spread_bit(w: vec4<u32>, bit: u32) -> vec4<u32> {
    return ((w >> vec4<u32>(bit)) & vec4<u32>(0x01010101u)) * vec4<u32>(0xffu);
}

// The byte `a` where a byte of `mask` is 0, `b` where it is 255.
fn byte_of(mask: vec4<u32>, a: u32, b: u32) -> vec4<u32> {
    return vec4<u32>(a * 0x01010101u) ^ (mask & vec4<u32>((a ^ b) * 0x01010101u));
}

fn bytes_of(mask: vec4<u32>, a: vec4<u32>, b: vec4<u32>) -> vec4<u32> {
    return a ^ (mask & (a ^ b));
}

// Codes below 16, one a byte, as the signed bytes -127 -104 -83 -65 -49 -35 -22 -10 1 13 25 38 53 69 89 113.
// A tree of bytewise choices, because a table would be indexed by a variable.
fn looked_up(codes: vec4<u32>) -> vec4<u32> {
    let m0 = spread_bit(codes, 0u);
    let m1 = spread_bit(codes, 1u);
    let m2 = spread_bit(codes, 2u);
    let m3 = spread_bit(codes, 3u);
    let q0 = bytes_of(m1, byte_of(m0, 0x81u, 0x98u), byte_of(m0, 0xadu, 0xbfu));
    let q1 = bytes_of(m1, byte_of(m0, 0xcfu, 0xddu), byte_of(m0, 0xeau, 0xf6u));
    let q2 = bytes_of(m1, byte_of(m0, 0x01u, 0x0du), byte_of(m0, 0x19u, 0x26u));
    let q3 = bytes_of(m1, byte_of(m0, 0x35u, 0x45u), byte_of(m0, 0x59u, 0x71u));
    return bytes_of(m3, bytes_of(m2, q0, q1), bytes_of(m2, q2, q3));
}

// The same of the low and the high nibbles of four bytes, as numbers.
fn looked_up_halves(w: u32) -> array<vec4<f32>, 2> {
    let nibbles = vec4<u32>(w, w >> 4u, 0u, 0u) & vec4<u32>(0x0f0f0f0fu);
    let found = looked_up(nibbles);
    return array<vec4<f32>, 2>(vec4<f32>(unpack4xI8(found.x)), vec4<f32>(unpack4xI8(found.y)));
}
