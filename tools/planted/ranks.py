"""Bugs in what ranks that share a sequence hand to each other: prefixes of states."""

from planted.bug import Bug

SHARED_STATE = "lagwise/attention/shared_state.cpp"

BUGS = [
    Bug("ranks: the unit of a state looks ahead", "ops", SHARED_STATE,
        "all.largest.push_back(u);", "all.largest.push_back(next);"),
    Bug("ranks: a row fades once too often before the next shard", "ops", SHARED_STATE,
        "(count - 1 - place)", "(count - place)"),
    Bug("ranks: the gradient of a factor misses the denominator", "ops", SHARED_STATE,
        ": of_z.size(2) > 0 ? of_s + of_z", ": of_z.size(2) > 0 ? of_s"),
    Bug("ranks: gradients of gathered rows are those of rank 0", "ops",
        "lagwise/ops/peer_rows.cpp",
        "  for (size_t p = 1; p < given.size(); ++p) sum += given[p];\n", ""),
    Bug("ranks: what a rank adds is not brought into the unit of the sum", "ops",
        SHARED_STATE, "    all.b.back() = shrunk(m, next).unsqueeze(2);\n", ""),
    Bug("ranks: the sum keeps its unit where a larger one comes", "ops", SHARED_STATE,
        "    all.a.back() = all.a.back() * shrunk(u, next).unsqueeze(2);\n", ""),
    Bug("ranks: the state before does not fade through a rank", "ops", SHARED_STATE,
        "x = sum_of(all.forward(p, x), own);", "x = sum_of(x, own);"),
    Bug("ranks: the gradient of a state does not fade on its way back", "ops",
        SHARED_STATE, "                   all.backward(p, later));",
        "                   later);"),
    Bug("ranks: the delta rule goes back as it came", "ops", SHARED_STATE,
        "at::matmul(a[p].transpose(2, 3), x.s)", "at::matmul(a[p], x.s)"),
    Bug("ranks: the gradient of a rank's matrix is its transpose", "ops", SHARED_STATE,
        "d_factor = at::matmul(later.s, before.s.transpose(2, 3));",
        "d_factor = at::matmul(before.s, later.s.transpose(2, 3));"),
    Bug("ranks: a row fades by its own gate before the next shard", "ops", SHARED_STATE,
        "at::cat({sums.slice(2, 1), at::zeros_like(first)}, 2).unsqueeze(3);",
        "sums.unsqueeze(3);"),
    Bug("ranks: the state before fades once too little", "ops", SHARED_STATE,
        "fading.all + count.to(k.scalar_type())",
        "fading.all + (count - 1).to(k.scalar_type())"),
    Bug("ranks: the last state of the delta rule is that of its own rows", "ops",
        SHARED_STATE, "{at::matmul(matrix, before.s) + own, last.z}", "{own, last.z}"),
    Bug("ranks: full attention adds states of different units", "ops", SHARED_STATE,
        "    row = row * shrunk(own.m, largest).unsqueeze(2);\n", ""),
]
