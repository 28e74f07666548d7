"""Bugs in the runtime without torch: products of few rows, the pass, the step of a head."""

from planted.bug import Bug

FEW_ROWS = "lagwise/kernels/few_rows.cpp"
PASS = "lagwise/runtime/pass.cpp"
HEAD = "lagwise/runtime/head_step.cpp"
PLACES = "lagwise/runtime/places.cpp"
STATE = "lagwise/runtime/state.cpp"
CHECK = "lagwise/runtime/plan_check.cpp"

BUGS = [
    Bug("few rows: every block of int8 begins anew with the bias", "kernels", FEW_ROWS,
        "at.block > 0 ? hn::LoadU(Tag(), to) : start_of(at.start, at.column, to);",
        "start_of(at.start, at.column, to);"),
    Bug("few rows: the fourth vector of a row is not stored", "kernels", FEW_ROWS,
        "if (count > 3) hn::StoreU", "if (count > 4) hn::StoreU"),
    Bug("few rows: all blocks have the scale of the first", "kernels", FEW_ROWS,
        "hn::LoadU(Tag(), scales + index * kPanelOutputs)",
        "hn::LoadU(Tag(), scales + 0 * index)"),
    Bug("few rows: a row of int8 is unpacked by the scale of its first block", "kernels",
        FEW_ROWS, "panel * w.blocks() + c / kScaledColumns;", "panel * w.blocks();"),
    Bug("few rows: the sum that is there is replaced", "kernels", FEW_ROWS,
        "start.add ? hn::Add(hn::LoadU(Tag(), y), bias) : bias;", "bias;"),
    Bug("runtime: embeddings are not scaled", "runtime", PASS,
        "for (int64_t j = 0; j < plan_.dim; ++j) row[j] *= root;", ""),
    Bug("runtime: the newest token passes the convolution unweighted", "runtime", PASS,
        "      if (memory.convolution > 0) sum *= taps[column];\n", ""),
    Bug("runtime: the convolution remembers one token for two", "runtime", PASS,
        "std::swap(kept, shifted);", "kept = shifted;"),
    Bug("runtime: the forget gate lacks its bias", "runtime", PASS,
        "softplus(forget + weights.gates.bias[h]);", "softplus(forget);"),
    Bug("runtime: the write gate is no sigmoid", "runtime", PASS,
        "if (memory.rewrites) write = sigmoid(write);", ""),
    Bug("runtime: results are not gated", "runtime", PASS,
        "heads.row(i)[j] *= gate.row(i)[j];", ";"),
    Bug("runtime: a row gets the logits of another", "runtime", PASS,
        "x.slice(i, i + 1), y.slice(wanted, wanted + 1)",
        "x.slice(wanted, wanted + 1), y.slice(wanted, wanted + 1)"),
    Bug("runtime: queries of the delta rule keep their length", "runtime", HEAD,
        "if (memory.rewrites) make_unit(encoded, 0), make_unit(encoded, 1);",
        "if (memory.rewrites) make_unit(encoded, 1);"),
    Bug("runtime: a denominator of its own takes the turned keys", "runtime", HEAD,
        "const bool apart = norm.data != nullptr && memory.divides;",
        "const bool apart = false;"),
    Bug("runtime: a state does not come into the range of a larger key", "runtime", HEAD,
        "for (int64_t i = 0; i < count; ++i) state[i] *= factor;", ""),
    Bug("runtime: every head turns like the first", "runtime", PLACES,
        "set = from.sets > 1 ? head : 0;", "set = 0;"),
    Bug("runtime: a saved state may stand beyond the last position", "runtime", STATE,
        "header.position < 0 || header.position > layout.most_positions()",
        "header.position < 0"),
    Bug("runtime: half of a pair of tensors is enough", "runtime", CHECK,
        "m.q_bias.empty() == m.k_bias.empty()", "m.k_bias.empty() || !m.k_bias.empty()"),
]
