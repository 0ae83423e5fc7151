fn unit_weights(unit: u32) -> array<vec4<f32>, 8> {
    let h = extra[unit];
    let sm = short_at(ALL_UNITS, unit);
    let dm = unpack2x16float(extra[ALL_UNITS + ((ALL_UNITS + 1u) >> 1u) + (unit >> 3u)]);
    let d = dm.x * f32(sm & 0xffu);
    let m = -(dm.y * f32(sm >> 8u));
    let w = quants[unit];
    return array<vec4<f32>, 8>(
        scaled(low(w.x) + fifth(h), d, m), scaled(low(w.y) + fifth(h >> 4u), d, m),
        scaled(low(w.z) + fifth(h >> 8u), d, m), scaled(low(w.w) + fifth(h >> 12u), d, m),
        scaled(high(w.x) + fifth(h >> 16u), d, m), scaled(high(w.y) + fifth(h >> 20u), d, m),
        scaled(high(w.z) + fifth(h >> 24u), d, m), scaled(high(w.w) + fifth(h >> 28u), d, m));
}
