// The 64th largest of a column's thread maxima, by bisection on the ordered bits: every one of the 64
// best logits is at least as large.
override MAXIMA: u32;
override SPACE: u32;

@group(0) @binding(0) var<storage, read> maxima: array<u32>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;
var<workgroup> counts: array<u32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    var threshold = 0u;
    for (var bit = 32u; bit > 0u; bit--) {
        let probe = threshold | (1u << (bit - 1u));
        var count = 0u;
        for (var i = thread; i < MAXIMA; i += 256u) {
            count += select(0u, 1u, maxima[group.x * MAXIMA + i] >= probe);
        }
        counts[thread] = count;
        workgroupBarrier();
        for (var half = 128u; half > 0u; half >>= 1u) {
            if (thread < half) { counts[thread] += counts[thread + half]; }
            workgroupBarrier();
        }
        if (counts[0] >= 64u) { threshold = probe; }
        workgroupBarrier();
    }
    if (thread == 0u) { result[group.x * SPACE + 6u] = threshold; }
}
