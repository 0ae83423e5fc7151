// A quarter of a unit: values 4j..4j+3 and 16+4j..16+4j+3.
fn quarter(unit: u32, j: u32) -> array<vec4<f32>, 2> {
    return array<vec4<f32>, 2>(
        bitcast<vec4<f32>>(vec4<u32>(word(unit, 4u * j), word(unit, 4u * j + 1u),
                                     word(unit, 4u * j + 2u), word(unit, 4u * j + 3u))),
        bitcast<vec4<f32>>(vec4<u32>(word(unit, 16u + 4u * j), word(unit, 17u + 4u * j),
                                     word(unit, 18u + 4u * j), word(unit, 19u + 4u * j))));
}
