#pragma once

#include <string>
#include <utility>
#include <vector>

namespace lagwise::data {

/// What a reader left out, for people: a line for each reason with how many there are and
/// the first of them by name, "left out: 2, damaged MIDI files, such as a.mid". `reasons`
/// has what is left out and its names; where there are none there is no line.
std::vector<std::string> left_out_lines(
    const std::vector<std::pair<std::string, std::vector<std::string>>>& reasons);

}  // namespace lagwise::data
