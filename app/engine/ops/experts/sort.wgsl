// Workgroup e lists the (column, slot) pairs of expert e in ascending order, behind those of the experts
// before it, and cuts them into tiles. With p pairs before them its tiles begin at p / TILE + e: there is
// room for all and no expert has to know how many tiles the others need. Tiles left over stay empty.
const THREADS = ${threads}u;
override PAIRS: u32;
override USED: u32;
override SLOTS: u32;
override TILE: u32;
$route
$tile

@group(0) @binding(0) var<storage, read> routes: array<Route>;
@group(0) @binding(1) var<storage, read_write> pairs: array<u32>;
@group(0) @binding(2) var<storage, read_write> tiles: array<Tile>;
var<workgroup> before: array<u32, THREADS>;
var<workgroup> own: array<u32, THREADS>;

fn expert_of(pair: u32) -> u32 {
    return routes[pair / USED * SLOTS + pair % USED].expert;
}

@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(workgroup_id) group: vec3<u32>) {
    let expert = group.x;
    let share = (PAIRS + THREADS - 1u) / THREADS;
    let from_pair = min(thread * share, PAIRS);
    let to_pair = min(from_pair + share, PAIRS);
    var smaller = 0u;
    var equal = 0u;
    for (var p = from_pair; p < to_pair; p++) {
        let other = expert_of(p);
        smaller += select(0u, 1u, other < expert);
        equal += select(0u, 1u, other == expert);
    }
    before[thread] = smaller;
    own[thread] = equal;
    workgroupBarrier();
    // Running sums over the threads.
    for (var reach = 1u; reach < THREADS; reach <<= 1u) {
        let behind = thread - min(reach, thread);
        let add_before = select(0u, before[behind], thread >= reach);
        let add_own = select(0u, own[behind], thread >= reach);
        workgroupBarrier();
        before[thread] += add_before;
        own[thread] += add_own;
        workgroupBarrier();
    }
    let first = before[THREADS - 1u];
    let count = own[THREADS - 1u];
    var at = first + own[thread] - equal;
    for (var p = from_pair; p < to_pair; p++) {
        if (expert_of(p) == expert) {
            pairs[at] = p;
            at++;
        }
    }
    let first_tile = first / TILE + expert;
    let end_tile = (first + count) / TILE + expert + 1u;
    for (var t = first_tile + thread; t < end_tile; t += THREADS) {
        let done = min((t - first_tile) * TILE, count);
        tiles[t] = Tile(expert, first + done, min(count - done, TILE), 0u);
    }
}
