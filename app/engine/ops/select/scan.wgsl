// A pass over one column's logits, 4096 a workgroup: the best id, the largest of each thread's 64, the
// log-sum-exp and the count of numbers that are not finite.
override VOCAB: u32;
override STRIDE: u32;
override SCANS: u32;

$scan

@group(0) @binding(0) var<storage, read> logits: array<f32>;
@group(0) @binding(1) var<storage, read_write> scans: array<Scan>;
@group(0) @binding(2) var<storage, read_write> maxima: array<u32>;
var<workgroup> keys: array<u32, 64>;
var<workgroup> ids: array<u32, 64>;
var<workgroup> broken: array<u32, 64>;
var<workgroup> peaks: array<f32, 64>;
var<workgroup> totals: array<f32, 64>;

$ordered

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    var key = 0u;
    var id = 0u;
    var bad = 0u;
    var peak = -3.0e38;
    var total = 0.0;
    for (var i = 0u; i < 64u; i++) {
        let at = group.x * 4096u + i * 64u + thread;
        if (at < VOCAB) {
            let value = logits[group.y * STRIDE + at];
            let own = ordered(value);
            if (own == 0u) {
                bad++;
            } else {
                if (own > key) { key = own; id = at; }
                let top = max(peak, value);
                total = fma(total, exp(peak - top), exp(value - top));
                peak = top;
            }
        }
    }
    maxima[(group.y * SCANS + group.x) * 64u + thread] = key;
    keys[thread] = key;
    ids[thread] = id;
    broken[thread] = bad;
    peaks[thread] = peak;
    totals[thread] = total;
    workgroupBarrier();
    for (var half = 32u; half > 0u; half >>= 1u) {
        if (thread < half) {
            let other = thread + half;
            if (keys[other] > keys[thread] || (keys[other] == keys[thread] && ids[other] < ids[thread])) {
                keys[thread] = keys[other];
                ids[thread] = ids[other];
            }
            broken[thread] += broken[other];
            let top = max(peaks[thread], peaks[other]);
            totals[thread] = totals[thread] * exp(peaks[thread] - top) + totals[other] * exp(peaks[other] - top);
            peaks[thread] = top;
        }
        workgroupBarrier();
    }
    if (thread == 0u) {
        scans[group.y * SCANS + group.x] = Scan(keys[0], ids[0], broken[0], 0u, peaks[0], totals[0], 0u, 0u);
    }
}
