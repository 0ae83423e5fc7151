// Prompt columns in whole numbers on a processor that imitates a GPU: a few rows and columns a thread, no
// workgroup memory. The sums are those of the tiled kernel.
override ROWS: u32;
override UNITS: u32;
override ALL_UNITS: u32;
override Y_STRIDE: u32;
override Y_FIRST: u32;

$bindings
$declarations
$reader

fn dot_of(w: vec4<u32>, v: vec4<u32>) -> i32 {
    return dot4I8Packed(w.x, v.x) + dot4I8Packed(w.y, v.y) + dot4I8Packed(w.z, v.z) + dot4I8Packed(w.w, v.w);
}

@compute @workgroup_size(8)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let first_row = group.x * 32u + thread;
$place
$rows
$zero
    for (var u = 0u; u < UNITS; u++) {
$load_w
$load_x
$dots
$accumulate
    }
$store
}
