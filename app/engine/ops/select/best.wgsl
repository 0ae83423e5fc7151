// Joins the scans of a column: best id, log-sum-exp, non-finite count. With ADVANCE the column's record
// becomes that of the next token, or is switched off at a stop id, so that steps can be sent ahead.
$column
override SCANS: u32;
override SPACE: u32;
override ADVANCE: u32;

$scan

struct Stops {
    count: u32,
    ids: array<u32, 31>,
}

@group(0) @binding(0) var<storage, read> scans: array<Scan>;
@group(0) @binding(1) var<storage, read_write> result: array<u32>;
@group(0) @binding(2) var<storage, read_write> columns: array<Column>;
@group(0) @binding(3) var<storage, read> stops: Stops;

@compute @workgroup_size(1)
fn main(@builtin(workgroup_id) group: vec3<u32>) {
    var best = scans[group.x * SCANS];
    for (var i = 1u; i < SCANS; i++) {
        let scan = scans[group.x * SCANS + i];
        if (scan.key > best.key) { best.key = scan.key; best.id = scan.id; }
        best.broken += scan.broken;
        let top = max(best.peak, scan.peak);
        best.total = best.total * exp(best.peak - top) + scan.total * exp(scan.peak - top);
        best.peak = top;
    }
    let base = group.x * SPACE;
    result[base] = best.id;
    result[base + 1u] = best.broken;
    result[base + 2u] = bitcast<u32>(best.peak);
    result[base + 3u] = bitcast<u32>(best.total);
    result[base + 4u] = columns[group.x].live;
    result[base + 5u] = 0u;
    result[base + 6u] = best.key;
    result[base + 7u] = columns[group.x].position;
    if (ADVANCE == 1u) {
        for (var i = 0u; i < stops.count; i++) {
            if (stops.ids[i] == best.id) { columns[group.x].live = 0u; }
        }
        if (best.broken != 0u) { columns[group.x].live = 0u; }
        columns[group.x].token = best.id;
        columns[group.x].position += 1u;
        columns[group.x].replay = 1u;
    }
}
