fn ints(unit: u32) -> array<vec4<u32>, 2> {
    return array<vec4<u32>, 2>(quants[2u * unit], quants[2u * unit + 1u]);
}

fn scales(unit: u32) -> vec4<f32> {
    return vec4<f32>(half_at(0u, unit), 0.0, 0.0, 0.0);
}
