fn quarter(unit: u32, j: u32) -> array<vec4<f32>, 2> {
    let dm = unpack2x16float(extra[unit]);
    let d = dm.x;
    let m = dm.y;
    let w = word(unit, j);
    return array<vec4<f32>, 2>(scaled(low(w), d, m), scaled(high(w), d, m));
}
