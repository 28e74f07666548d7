#include "lagwise/data/text/chrf.h"

#include <string>
#include <unordered_map>
#include <vector>

#include "lagwise/data/text/code_point.h"

namespace lagwise::data {
namespace {

/// Unicode's White_Space, and four marks of ASCII that Python parts words at too.
bool parts_words(uint32_t code) {
  return is_blank(code) || (code >= 0x1C && code <= 0x1F);
}

/// A text without its blanks, and where its characters begin, with the end of the last.
struct Characters {
  explicit Characters(std::string_view from) {
    while (!from.empty()) {
      const CodePoint point = first_code_point(from);
      if (!point.valid || !parts_words(point.code)) {
        starts.push_back(text.size());
        text += from.substr(0, point.bytes);
      }
      from.remove_prefix(point.bytes);
    }
    starts.push_back(text.size());
  }

  /// How many strings of n characters there are.
  size_t strings(size_t n) const { return starts.size() > n ? starts.size() - n : 0; }
  std::string_view string(size_t i, size_t n) const {
    return std::string_view(text).substr(starts[i], starts[i + n] - starts[i]);
  }

  std::string text;
  std::vector<size_t> starts;
};

}  // namespace

void ChrF::add(std::string_view written, std::string_view wanted) {
  const Characters ours(written), theirs(wanted);
  for (size_t n = 1; n <= kOrders && theirs.strings(n) > 0; ++n) {
    std::unordered_map<std::string_view, int64_t> open;  // wanted, and not yet met
    for (size_t i = 0; i < theirs.strings(n); ++i) ++open[theirs.string(i, n)];
    Counts& counts = orders_[n - 1];
    counts.written += static_cast<int64_t>(ours.strings(n));
    counts.wanted += static_cast<int64_t>(theirs.strings(n));
    for (size_t i = 0; i < ours.strings(n); ++i)
      if (const auto found = open.find(ours.string(i, n));
          found != open.end() && found->second > 0) {
        --found->second;
        ++counts.both;
      }
  }
}

double ChrF::score() const {
  double precision = 0, recall = 0, orders = 0;
  for (const Counts& counts : orders_) {
    if (counts.written == 0 || counts.wanted == 0) continue;
    precision += static_cast<double>(counts.both) / static_cast<double>(counts.written);
    recall += static_cast<double>(counts.both) / static_cast<double>(counts.wanted);
    ++orders;
  }
  if (precision + recall == 0) return 0;
  precision /= orders, recall /= orders;
  constexpr double kWeight = kBeta * kBeta;
  return 100 * (1 + kWeight) * precision * recall / (kWeight * precision + recall);
}

}  // namespace lagwise::data
