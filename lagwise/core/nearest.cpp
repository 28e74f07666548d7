#include "lagwise/core/nearest.h"

#include <algorithm>

namespace lagwise {

// Dynamic programming over prefixes: best[i][j] is the distance between the
// first i letters of a and the first j letters of b.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> best(a.size() + 1,
                                        std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) best[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) best[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = best[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      best[i][j] = std::min({replaced, best[i - 1][j] + 1, best[i][j - 1] + 1});
      const bool swapped =
          i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) best[i][j] = std::min(best[i][j], best[i - 2][j - 2] + 1);
    }
  }
  return best[a.size()][b.size()];
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  std::string found;
  size_t least = 2 + word.size() / 3;  // one more than is still plausible
  for (const std::string& candidate : candidates) {
    const size_t distance = edit_distance(word, candidate);
    // A candidate that shares no letter is no suggestion, however short.
    if (distance < least && distance < candidate.size()) {
      least = distance;
      found = candidate;
    }
  }
  return found;
}

std::string did_you_mean(std::string_view word,
                         const std::vector<std::string>& candidates) {
  const std::string found = nearest(word, candidates);
  return found.empty() ? "" : "; did you mean '" + found + "'?";
}

}  // namespace lagwise
