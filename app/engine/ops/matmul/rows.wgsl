// Prompt columns on a processor that imitates a GPU, where a load costs far more than a multiplication:
// eight rows and $cols_each columns a thread. The sums are those of the tiled kernel: k ascending, one
// accumulator an output.
const COLS = ${cols_each}u;
$sizes

$bindings
$reader

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let first_row = group.x * 64u + thread;
    let first_col = group.y * COLS;
$rows
$zero
    for (var u = 0u; u < UNITS; u++) {
$accumulate
    }
$store
}
