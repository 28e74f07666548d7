#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "lagwise/data/text/byte_pairs.h"

namespace lagwise::data {

/// Learns byte pairs from text: the pair of neighbours that occurs most often becomes a
/// token, again and again, until the vocabulary is full or no pair occurs twice. Of
/// pairs that occur as often, the one with the lower ids is taken. The result does not
/// depend on the order of the texts or on chance, and is that of Hugging Face's
/// `BpeTrainer(min_frequency=2)` with the alphabet of ByteLevel, but that pieces above
/// 64 bytes count as several: else a text without blanks would be one piece, and each
/// merge a walk through all of it.
class BytePairTraining {
 public:
  void read(std::string_view text);

  /// `vocabulary`: tokens in all, the 256 bytes among them. std::invalid_argument below
  /// that.
  BytePairs learn(int64_t vocabulary) const;

 private:
  std::unordered_map<std::string, int64_t> pieces_;  ///< how often each occurs
};

}  // namespace lagwise::data
