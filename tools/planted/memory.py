"""Bugs in attention that forgets and rewrites by content: gates and the delta rule."""

from planted.bug import Bug

CHUNK = "lagwise/kernels/chunk-inl.h"
GATE_GRADIENT = "lagwise/kernels/gate_gradient.cpp"
GATES_MEET = "lagwise/ops/linear/linear_gate_gradient.h"
STEP = "lagwise/kernels/linear_step.cpp"
DELTA_CHUNK = "lagwise/kernels/delta_chunk-inl.h"
DELTA = "lagwise/kernels/delta_rule.cpp"
DELTA_GRADIENT = "lagwise/kernels/delta_gradient.cpp"

BUGS = [
    Bug("gates: a row fades by the gate of the row before", "kernels", CHUNK,
        "decay_.before_first ? begin : begin - 1;", "begin > 0 ? begin - 1 : 0;"),
    Bug("gates: the gradient of a border is what rounding leaves", "kernels",
        GATE_GRADIENT,
        "    if (std::isinf(gate(i, 0)) || (from_nothing && i == 0)) after = 0;\n", ""),
    Bug("delta: rows of a chunk do not see what others wrote", "kernels",
        DELTA_CHUNK, "T factor = -pairs[a * stride + b];",
        "T factor = 0 * pairs[a * stride + b];"),
    Bug("delta: keys get no gradient through what they recalled", "kernels",
        DELTA_GRADIENT,
        "    multiply<T>({c.turned_m, stride, 1}, k, w.d_padded, w.o, width, rows, rows, true);\n",
        ""),
    Bug("gates: a row counts for itself as if its own gate had passed", "kernels", CHUNK,
        "x = hn::IfThenElse(itself, one, x);", "x = hn::IfThenElse(itself, factor, x);"),
    Bug("gates: the decay of a head is forgotten beside them", "kernels", CHUNK,
        "by == By::head ? static_cast<double>(decay_.log_factor(0, 0)) : 0.0;", "0.0;"),
    Bug("gates: the state misses the last gate of a chunk", "kernels", CHUNK,
        "whole = since[rows - 1];", "whole = since[rows > 1 ? rows - 2 : 0];"),
    Bug("gates: rows of a short chunk fade like those of a whole one", "kernels", CHUNK,
        "until = within(rows - 1);", "until = within(chunk - 1);"),
    Bug("gates: the first row of a chunk sees the state unfaded", "kernels", CHUNK,
        "if (a > 0 || lead > 0)", "if (a > 0)"),
    Bug("gates: the gradient forgets the rows that come after", "kernels", GATE_GRADIENT,
        "after += row_product(q, dq, i)", "after = row_product(q, dq, i)"),
    Bug("gates: the gradient forgets what weighs the keys", "kernels", GATE_GRADIENT,
        "weight.data ? static_cast<double>(weight(i, 0)) : 1.0;", "1.0;"),
    Bug("gates: a step does not see its gate", "kernels", STEP,
        "decay.log_gate.data ? decay.log_gate(0, 0) : T{0};", "T{0};"),
    Bug("gates: states of runs meet without the gate between them", "ops", GATES_MEET,
        "if (run + 1 == runs(head).size()) return rows(0, d_);", "return rows(0, d_);"),
    Bug("gates: the denominator's state gives gates no gradient", "ops", GATES_MEET,
        "if (d_z.data)", "if (d_z.data && d_z.rows < 0)"),
    Bug("delta: what the state recalls does not fade", "kernels", DELTA_CHUNK,
        "hn::Set(tag, fade.by_row ? fade.since[a] : T{1});", "hn::Set(tag, T{1});"),
    Bug("delta: rows of a chunk rewrite each other at full strength", "kernels",
        DELTA_CHUNK, "      if (left) factor *= left[a];\n", ""),
    Bug("delta: values are written at full strength", "kernels", DELTA,
        "to.inverse[a * pair_stride<T>() + b] *= to.strength[b];", ";"),
    Bug("delta: strengths of the first chunk serve all", "kernels", DELTA,
        "solving.strength[a] = write_strength(begin + a, 0);",
        "solving.strength[a] = write_strength(a, 0);"),
    Bug("delta: the state is not carried out", "kernels", DELTA,
        "  store_state<T>(w, w.s, s);\n", ""),
    Bug("delta: states that the gradient reads do not fade", "kernels", DELTA_GRADIENT,
        "      scale_by(next, fade.whole, w.d * width);\n", ""),
    Bug("delta: the gradient of a written row forgets what fades after it", "kernels",
        DELTA_GRADIENT, "scale_by(d_u + a * c.e, fade.until[a], width);", ";"),
    Bug("delta: the gradient of strengths sees one panel of values", "kernels",
        DELTA_GRADIENT, "dot(c.w + a * c.e, errors + a * c.e, c.e);",
        "dot(c.w + a * c.e, errors + a * c.e, w.width);"),
    Bug("delta: the gradient of the state does not fade on its way back", "kernels",
        DELTA_GRADIENT, "  scale_by(r, fade.whole, w.panels * w.d * width);\n", ""),
    Bug("delta: a gate gets no gradient from what was written before it", "kernels",
        DELTA_GRADIENT, "sum += pairs[b] + writing[b];", "sum += pairs[b];"),
    Bug("delta: a step writes at full strength", "kernels", STEP,
        "x0 = hn::Mul(strength, hn::NegMulAdd(fade, r0, x0));",
        "x0 = hn::NegMulAdd(fade, r0, x0);"),
]
