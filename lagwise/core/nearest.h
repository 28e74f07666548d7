#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lagwise {

/// How many single slips of the finger turn `a` into `b`: a letter added, left
/// out, replaced, or two neighbours swapped. Cost |a| |b|.
size_t edit_distance(std::string_view a, std::string_view b);

/// The candidate closest to `word`, the first of equals; empty when none is so
/// close that it was plausibly meant (one slip, and one more per three letters).
std::string nearest(std::string_view word, const std::vector<std::string>& candidates);

/// "; did you mean 'exponent'?", to end an error message with; empty when
/// nothing is near.
std::string did_you_mean(std::string_view word,
                         const std::vector<std::string>& candidates);

}  // namespace lagwise
