// The sixteen 2-bit numbers of a word, in the bytes of four words.
fn twos(w: u32) -> vec4<u32> {
    return vec4<u32>(w, w >> 2u, w >> 4u, w >> 6u) & vec4<u32>(0x03030303u);
}

// A 16-byte word holds two units.
fn ints(unit: u32) -> array<vec4<u32>, 2> {
    let both = quants[unit >> 1u];
    let w = select(both.xy, both.zw, (unit & 1u) == 1u);
    return array<vec4<u32>, 2>(twos(w.x), twos(w.y));
}

fn scales(unit: u32) -> vec4<f32> {
    let small = short_at(0u, unit);
    let dm = unpack2x16float(extra[(ALL_UNITS >> 1u) + (unit >> 3u)]);
    let four = vec4<f32>(vec4<u32>(small, small >> 8u, small >> 4u, small >> 12u) & vec4<u32>(15u));
    return four * vec4<f32>(dm.x, dm.x, -dm.y, -dm.y);
}
