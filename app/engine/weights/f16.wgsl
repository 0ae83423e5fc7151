fn halves(a: u32, b: u32) -> vec4<f32> {
    return vec4<f32>(unpack2x16float(a), unpack2x16float(b));
}

fn quarter(unit: u32, j: u32) -> array<vec4<f32>, 2> {
    return array<vec4<f32>, 2>(
        halves(word(unit, 2u * j), word(unit, 2u * j + 1u)),
        halves(word(unit, 8u + 2u * j), word(unit, 9u + 2u * j)));
}
