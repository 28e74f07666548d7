#pragma once

#include <cstdint>
#include <span>

#include "lagwise/data/music/token_scheme.h"

namespace lagwise::data {

/// The tick up to which tokens, from the start of a piece, have told all: of `groove` the
/// time they have come to, of `remi` the end of the bar they are in. What is told may sound
/// longer, so decode(ids).end may lie later; what comes after it begins here or later, but
/// for the rest of such a bar.
int64_t tokens_reach(const TokenScheme& scheme, std::span<const int32_t> ids);

}  // namespace lagwise::data
