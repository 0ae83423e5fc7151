fn halves(a: u32, b: u32) -> vec4<f32> {
    return bitcast<vec4<f32>>(vec4<u32>(a << 16u, a & 0xffff0000u, b << 16u, b & 0xffff0000u));
}

fn unit_weights(unit: u32) -> array<vec4<f32>, 8> {
    let b = unit * 4u;
    let w0 = quants[b];
    let w1 = quants[b + 1u];
    let w2 = quants[b + 2u];
    let w3 = quants[b + 3u];
    return array<vec4<f32>, 8>(
        halves(w0.x, w0.y), halves(w0.z, w0.w), halves(w1.x, w1.y), halves(w1.z, w1.w),
        halves(w2.x, w2.y), halves(w2.z, w2.w), halves(w3.x, w3.y), halves(w3.z, w3.w));
}
