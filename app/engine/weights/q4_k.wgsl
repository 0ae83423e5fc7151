fn unit_weights(unit: u32) -> array<vec4<f32>, 8> {
    let sm = short_at(0u, unit);
    let dm = unpack2x16float(extra[((ALL_UNITS + 1u) >> 1u) + (unit >> 3u)]);
    let d = dm.x * f32(sm & 0xffu);
    let m = -(dm.y * f32(sm >> 8u));
    let w = quants[unit];
    return array<vec4<f32>, 8>(
        scaled(low(w.x), d, m), scaled(low(w.y), d, m), scaled(low(w.z), d, m), scaled(low(w.w), d, m),
        scaled(high(w.x), d, m), scaled(high(w.y), d, m), scaled(high(w.z), d, m), scaled(high(w.w), d, m));
}
