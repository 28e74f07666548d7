#pragma once

#include <cstdint>

#include "lagwise/core/spec.h"

namespace lagwise {

/// How attention remembers by content: options that stand in the text of an attention
/// beside its own. The layer around it makes the gates from its input (nn/gates.h), and
/// attention uses them.
///
///     forget (none)        gated: the past fades by a factor that each token decides
///     clocks (8..2048)     of forget=gated: after how many tokens heads have forgotten
///                          by a factor e at first, from the first head to the last
///     conv (0)             queries, keys and values are mixed with those of the tokens
///                          just before, so many in all; 0: they are not
///     gate_output (false)  what heads return is multiplied by SiLU of a projection of
///                          the layer's input
///     write (add)          of linear attention; delta: a write replaces what its key
///                          recalls
struct MemoryOptions {
  bool forgets = false;
  double shortest_clock = 8, longest_clock = 2048;  ///< tokens
  bool rewrites = false;
  int64_t convolution = 0;  ///< tokens
  bool gates_output = false;

  /// Whether a row's result depends on which rows come before it, so that attention
  /// must be causal.
  bool needs_order() const { return forgets || rewrites || convolution > 0; }
};

/// Takes them from a text. `state`: attention has a state that can be rewritten.
/// std::invalid_argument says what is legal.
MemoryOptions take_memory_options(Spec& spec, bool state);

}  // namespace lagwise
