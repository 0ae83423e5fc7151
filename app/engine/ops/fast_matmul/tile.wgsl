// Prompt columns in whole numbers, in tiles of 64 rows and two units of k. Units ascend with one accumulator
// an output, so that bits depend neither on the number of columns nor on where a chunk ends.
const TILE = ${tile}u;
override ROWS: u32;
override UNITS: u32;
override ALL_UNITS: u32;
override Y_STRIDE: u32;
override Y_FIRST: u32;

$bindings
// [half of a unit][row or column]
var<workgroup> tile_w: array<vec4<u32>, 256>;
var<workgroup> tile_x: array<vec4<u32>, 4u * TILE>;
var<workgroup> scales_w: array<vec4<f32>, 128>;
var<workgroup> scales_x: array<vec4<f32>, 2u * TILE>;

$declarations
$reader

fn dot_of(w: vec4<u32>, v: vec4<u32>) -> i32 {
    return dot4I8Packed(w.x, v.x) + dot4I8Packed(w.y, v.y) + dot4I8Packed(w.z, v.z) + dot4I8Packed(w.w, v.w);
}

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let first_row = group.x * 64u;
$place
    let r = thread & 15u;
    let c = thread >> 4u;
    // The first half of the threads stages a unit of a row each, the others one of a column.
    let loads_w = thread < 128u;
    let mine = select((thread - 128u) % TILE, thread & 63u, loads_w);
    let my_part = select((thread - 128u) / TILE, thread >> 6u, loads_w);
    let my_row = (origin + min(first_row + mine, ROWS - 1u)) * UNITS;
    let my_col = x_row(min(first_col + mine, end_col - 1u)) * UNITS;
$zero
    var first = vec4<u32>(0u);
    var last = vec4<u32>(0u);
    var scale = vec4<f32>(0.0);
    for (var u = 0u; u < UNITS + 2u; u += 2u) {
        if (u > 0u) {
            if (loads_w) {
                tile_w[2u * my_part * 64u + mine] = first;
                tile_w[(2u * my_part + 1u) * 64u + mine] = last;
                scales_w[my_part * 64u + mine] = scale;
            } else if (my_part < 2u) {
                tile_x[2u * my_part * TILE + mine] = first;
                tile_x[(2u * my_part + 1u) * TILE + mine] = last;
                scales_x[my_part * TILE + mine] = scale;
            }
        }
        // The next units travel while the last ones are multiplied.
        let own = min(u + my_part, UNITS - 1u);
        if (loads_w) {
            let w = ints(my_row + own);
            first = w[0];
            last = w[1];
            scale = scales(my_row + own);
        } else {
            first = x[2u * (my_col + own)];
            last = x[2u * (my_col + own) + 1u];
            scale = x_scales[my_col + own];
        }
        scale = select(vec4<f32>(0.0), scale, u + my_part < UNITS);
        if (u == 0u) { continue; }
        workgroupBarrier();
        for (var part = 0u; part < 2u; part++) {
$load_w
$load_x
$dots
$accumulate
        }
        workgroupBarrier();
    }
$store
}
