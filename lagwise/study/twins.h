#pragma once

#include <string>

#include "lagwise/train/recipe.h"

namespace lagwise {

/// Whether a recipe trains with a past (train/past.h).
bool trains_with_past(const Recipe& recipe);

/// What a run shares with its twin: all of the recipe but the past, the seed, the title
/// and the learning rate, which a comparison may have chosen for each by itself. Both
/// were then trained on the same number of tokens.
///
/// A model trained with a past may be bad from an empty state, which lifts its own
/// restart line. So a gain from long context is claimed only against the lower of that
/// line and its twin's.
std::string twin_key(const Recipe& recipe);

}  // namespace lagwise
