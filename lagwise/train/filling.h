#pragma once

#include <cstdint>
#include <vector>

#include "lagwise/ops/encoded.h"

namespace lagwise {

class Model;

/// A token that might stand in a gap.
struct Candidate {
  int64_t token = 0;
  double probability = 0;
};

/// What a masked model finds for one gap of a text.
struct FilledGap {
  int64_t position = 0;               ///< in the tokens
  std::vector<Candidate> candidates;  ///< the most likely first; that one was put in
};

/// Fills the gaps of a text, where tokens are the mask (ModelRow::fills). With several
/// gaps, one at a time: that whose best candidate is the most likely, given what stands in
/// those filled before; so the words of neighbouring gaps suit each other. Candidates of a
/// gap have the probabilities of the moment it was filled.
///
/// At most `top` candidates of each; gaps come back in the order of their positions.
/// std::invalid_argument where the model does not fill in, or there is no gap.
std::vector<FilledGap> fill_gaps(Model& model, const Draw& draw,
                                 std::vector<int64_t>& tokens, int64_t top);

}  // namespace lagwise
