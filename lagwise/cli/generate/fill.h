#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "lagwise/cli/run_flags.h"

namespace lagwise::cli {

inline constexpr const char* kGap = "[MASK]";  ///< how a user writes one

struct FillFlags {
  std::string text;
  int top = 5;
};

/// --fill and --top; what continues a prompt does not go with them.
void add_fill_flags(CLI::App& verb, FillFlags& flags);

/// `lagwise generate RUN --fill TEXT`: what a masked model puts into the gaps of a text,
/// with its likeliest candidates. Each gap is one token. `out`: a folder for a card of it,
/// as of other samples; empty: none. std::invalid_argument for a run that does not fill
/// in, and a text without a gap.
void run_fill(const RunFlags& run, const FillFlags& flags, const std::string& out,
              bool json);

}  // namespace lagwise::cli
