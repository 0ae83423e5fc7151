// Flash attention of prompt columns on a processor that imitates a GPU: a row (a column and one of the query
// heads of a KV head) a thread, without barriers; eight rows share each load of a key. Keys ascend in steps of
// $keys_each at absolute multiples of $keys_each, and a key after a row's own position adds exactly nothing.
$column
const HEAD = ${head}u;
const QUADS = HEAD / 4u;
const GROUP = ${group}u;
$bindings

$key4

$value4

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group_id: vec3<u32>) {
    let first = group_id.x * 8u;
    let last = min(first + 7u, COLUMNS * GROUP - 1u);
    let row = min(first + thread, last);
    let column = row / GROUP;
    let kv_head = group_id.y;
    let head = kv_head * GROUP + row % GROUP;
    let query = column * (Q_STRIDE / 4u) + head * QUADS;
    let own = columns[column].position + 1u;
    let kv_row = columns[first / GROUP].kv_row;
    var seen = 0u;
    for (var c = first / GROUP; c <= last / GROUP; c++) { seen = max(seen, columns[c].position + 1u); }
$query
    var peak = -3.0e38;
    var total = 0.0;
    for (var start = 0u; start < seen; start += ${keys_each}u) {
$score
        let top = $top;
        let worth = select(exp(peak - top), 1.0, peak == top);
$weigh
        peak = top;
        total = fma(total, worth, $sum);
$accumulate
    }
$store
}
