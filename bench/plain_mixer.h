#pragma once

namespace lagwise::bench {

/// Adds the attention `plain` to the table, once: "plain:map=elu1" is causal linear
/// attention in plain torch operators (bench/torch_linear.h). It trains; it does not
/// decode.
void register_plain_mixer();

}  // namespace lagwise::bench
