#pragma once

namespace lagwise::bench {

/// Adds the encoding `materialised` to the table, once: sine_spe with its parameters,
/// options and noise, computed as bench/materialised_spe.h does. It takes the options
/// of sine_spe that concern it, and needs gaussian noise.
void register_materialised_encoding();

}  // namespace lagwise::bench
