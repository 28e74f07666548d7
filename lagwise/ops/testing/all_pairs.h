#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <tuple>
#include <vector>

/// Test support: a small set of cases in which every two values of every two
/// axes meet at least once. Most bugs need one or two special values to show;
/// the full product of our axes would be 200 000 cases, its pairs need about 70.
namespace lagwise::testing {

/// One case: values[a] is the index of the value chosen on axis a.
using Choice = std::vector<int>;

/// Value `first_value` of axis `first` together with `second_value` of `second`.
struct Pair {
  int first, first_value, second, second_value;
  auto key() const { return std::tie(first, first_value, second, second_value); }
  bool operator<(const Pair& other) const { return key() < other.key(); }
};

/// Whether a pair of values may occur in one case.
using Legal = std::function<bool(const Pair&)>;

inline std::set<Pair> legal_pairs(const std::vector<int>& sizes, const Legal& legal) {
  std::set<Pair> pairs;
  const int axes = static_cast<int>(sizes.size());
  for (int a = 0; a < axes; ++a)
    for (int b = a + 1; b < axes; ++b)
      for (int i = 0; i < sizes[static_cast<size_t>(a)]; ++i)
        for (int j = 0; j < sizes[static_cast<size_t>(b)]; ++j)
          if (legal({a, i, b, j})) pairs.insert({a, i, b, j});
  return pairs;
}

inline Pair ordered(int a, int i, int b, int j) {
  return a < b ? Pair{a, i, b, j} : Pair{b, j, a, i};
}

/// How many missing pairs `value` on `axis` would add to a half-made case (-1 on
/// open axes), or -1 where it would make an illegal one.
inline int gain(const Choice& choice, int axis, int value,
                const std::set<Pair>& missing, const Legal& legal) {
  int found = 0;
  for (int other = 0; other < static_cast<int>(choice.size()); ++other) {
    const int chosen = choice[static_cast<size_t>(other)];
    if (chosen < 0 || other == axis) continue;
    const Pair pair = ordered(axis, value, other, chosen);
    if (!legal(pair)) return -1;
    found += static_cast<int>(missing.count(pair));
  }
  return found;
}

/// Starts from the first missing pair and gives each further axis the value
/// that covers most missing pairs. `turn` rotates ties, so that values without
/// anything left to cover still alternate.
inline Choice next_case(const std::vector<int>& sizes, const std::set<Pair>& missing,
                        const Legal& legal, int turn) {
  const int axes = static_cast<int>(sizes.size());
  Choice choice(sizes.size(), -1);
  const Pair seed = *missing.begin();
  choice[static_cast<size_t>(seed.first)] = seed.first_value;
  choice[static_cast<size_t>(seed.second)] = seed.second_value;
  for (int axis = 0; axis < axes; ++axis) {
    if (choice[static_cast<size_t>(axis)] >= 0) continue;
    const int size = sizes[static_cast<size_t>(axis)];
    int best = -1, best_gain = -1;
    for (int step = 0; step < size; ++step) {
      const int value = (turn + axis + step) % size;
      const int here = gain(choice, axis, value, missing, legal);
      if (here > best_gain) best = value, best_gain = here;
    }
    choice[static_cast<size_t>(axis)] = best;
  }
  return choice;
}

inline std::set<Pair> pairs_of(const Choice& choice) {
  std::set<Pair> pairs;
  const int axes = static_cast<int>(choice.size());
  for (int a = 0; a < axes; ++a)
    for (int b = a + 1; b < axes; ++b)
      pairs.insert(
          {a, choice[static_cast<size_t>(a)], b, choice[static_cast<size_t>(b)]});
  return pairs;
}

/// The cases, the same on every run.
inline std::vector<Choice> all_pairs(const std::vector<int>& sizes,
                                     const Legal& legal) {
  std::set<Pair> missing = legal_pairs(sizes, legal);
  std::vector<Choice> cases;
  while (!missing.empty()) {
    cases.push_back(next_case(sizes, missing, legal, static_cast<int>(cases.size())));
    for (const Pair& pair : pairs_of(cases.back())) missing.erase(pair);
  }
  return cases;
}

}  // namespace lagwise::testing
