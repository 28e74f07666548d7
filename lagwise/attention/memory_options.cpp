#include "lagwise/attention/memory_options.h"

#include <charconv>
#include <cmath>
#include <stdexcept>
#include <string>

namespace lagwise {
namespace {

/// The whole text as a finite number of tokens, at least 1; else 0.
double tokens_of(std::string_view text) {
  double number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  const bool whole = error == std::errc() && stop == end;
  return whole && std::isfinite(number) && number >= 1 ? number : 0;
}

/// "8..2048"
void read_clocks(const Spec& spec, const std::string& text, MemoryOptions& to) {
  const size_t dots = text.find("..");
  if (dots != text.npos) {
    to.shortest_clock = tokens_of(std::string_view(text).substr(0, dots));
    to.longest_clock = tokens_of(std::string_view(text).substr(dots + 2));
  }
  if (dots == text.npos || to.shortest_clock < 1 ||
      to.longest_clock < to.shortest_clock)
    throw std::invalid_argument(spec.name() + ": option 'clocks' is '" + text +
                                "', expected two numbers of tokens from 1 up, the "
                                "smaller first, such as 8..2048");
}

}  // namespace

MemoryOptions take_memory_options(Spec& spec, bool state) {
  constexpr int64_t kLongest = 64;
  MemoryOptions options;
  options.forgets = spec.take_choice("forget", "none", {"none", "gated"}) == "gated";
  read_clocks(spec, spec.take("clocks", "8..2048"), options);
  if (state)
    options.rewrites = spec.take_choice("write", "add", {"add", "delta"}) == "delta";
  options.convolution = spec.take("conv", 0);
  if (options.convolution < 0 || options.convolution > kLongest)
    throw std::invalid_argument(spec.name() + ": expected conv from 0 (none) to " +
                                std::to_string(kLongest) + " tokens, got " +
                                std::to_string(options.convolution));
  options.gates_output = spec.take("gate_output", false);
  return options;
}

}  // namespace lagwise
