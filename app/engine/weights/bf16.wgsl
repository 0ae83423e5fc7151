fn halves(a: u32, b: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(vec4<u32>(a << 16u, a & 0xffff0000u, b << 16u, b & 0xffff0000u));
}

fn quarter(unit: u32, j: u32) -> array<vec4<f32>, 2> {
    return array<vec4<f32>, 2>(
        halves(word(unit, 2u * j), word(unit, 2u * j + 1u)),
        halves(word(unit, 8u + 2u * j), word(unit, 9u + 2u * j)));
}
