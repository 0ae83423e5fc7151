fn unit_weights(unit: u32) -> array<vec4<f32>, 8> {
    let b = unit * 8u;
    return array<vec4<f32>, 8>(
        bitcast<vec4<f32>>(quants[b]), bitcast<vec4<f32>>(quants[b + 1u]),
        bitcast<vec4<f32>>(quants[b + 2u]), bitcast<vec4<f32>>(quants[b + 3u]),
        bitcast<vec4<f32>>(quants[b + 4u]), bitcast<vec4<f32>>(quants[b + 5u]),
        bitcast<vec4<f32>>(quants[b + 6u]), bitcast<vec4<f32>>(quants[b + 7u]));
}
