fn unit_weights(unit: u32) -> array<vec4<f32>, 8> {
    let d = half_at(0u, unit);
    let m = -8.0 * d;
    let w = quants[unit];
    return array<vec4<f32>, 8>(
        scaled(low(w.x), d, m), scaled(low(w.y), d, m), scaled(low(w.z), d, m), scaled(low(w.w), d, m),
        scaled(high(w.x), d, m), scaled(high(w.y), d, m), scaled(high(w.z), d, m), scaled(high(w.w), d, m));
}
