#pragma once

#include <CLI/CLI.hpp>

namespace lagwise::cli {

// What an option's value must be, to hand to `check` of a CLI::Option. The help
// does not show them: the description of the option says it in words.

/// The highest count that flags take: an int holds twice as many.
inline constexpr int kMostCount = 1 << 30;

/// In plain decimal digits: CLI11 alone would read 010 as 8.
CLI::Validator whole_number(int least, int most);

CLI::Validator number(double least, double most);
CLI::Validator fraction();  ///< from 0 to below 0.5

CLI::Validator token_kind();  ///< as data/text/token_kind.h reads it

CLI::Validator file_name();  ///< anything but nothing

}  // namespace lagwise::cli
