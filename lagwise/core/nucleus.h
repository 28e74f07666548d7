#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lagwise {

/// exp(x_i / t) over their sum. An x of -infinity, which a mask leaves, gets 0; all of
/// them so gives zeros. t > 0, else std::invalid_argument.
std::vector<double> softmax(std::span<const double> logits, double temperature = 1);

/// The likeliest tokens, likeliest first (of equals the lower id), with their
/// probabilities, which sum to 1.
struct Nucleus {
  std::vector<int64_t> ids;
  std::vector<double> probabilities;
};

/// The fewest of the likeliest whose mass exceeds p: sorted tokens up to and including
/// the first at which the running sum is above p times the whole. Tokens of
/// probability 0 are never kept, one of another always is. p in [0, 1] (1: all), else
/// std::invalid_argument. The input need not sum to 1.
///
/// Paper  Holtzman et al., "The Curious Case of Neural Text Degeneration", 2020.
Nucleus nucleus(std::span<const double> probabilities, double p);

}  // namespace lagwise
