// Prompt columns on a processor that imitates a GPU, where a load costs far more than a multiplication:
// eight rows and a few columns a thread. The sums are those of the tiled kernel: k ascending, one
// accumulator an output.
$sizes

$bindings
$reader
$declarations

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let first_row = group.x * 64u + thread;
$place
$rows
$zero
    for (var u = 0u; u < UNITS; u++) {
$accumulate
    }
$store
}
