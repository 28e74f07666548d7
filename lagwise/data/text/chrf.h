#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace lagwise::data {

/// chrF (Popovic 2015, "chrF: character n-gram F-score for automatic MT evaluation"):
/// how much of what was wanted was written, in strings of n = 1 .. 6 characters without
/// blanks. Over all texts, with c_n strings that both have (each as often as in the one
/// that has it less often), w_n written and r_n wanted:
///
///     P = mean over n of c_n / w_n       R = mean over n of c_n / r_n
///
///     chrF = 100 (1 + beta^2) P R / (beta^2 P + R),     beta = 2
///
/// where the means are over those n that both sides have strings of, and what was written
/// for a text that has no string of n itself is not counted for that n. These are the
/// figures of sacreBLEU 2 as it comes (nc:6|nw:0|space:no|eff:yes), of one reference.
/// Characters are those of UTF-8, and bytes that are none count as one each; blanks are
/// what Python's str.split takes for them.
class ChrF {
 public:
  void add(std::string_view written, std::string_view wanted);
  double score() const;  ///< 0 to 100

  static constexpr size_t kOrders = 6;
  static constexpr double kBeta = 2;

 private:
  struct Counts {
    int64_t both = 0, written = 0, wanted = 0;
  };
  std::array<Counts, kOrders> orders_;
};

}  // namespace lagwise::data
