#include "lagwise/cli/eval/lengths.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>
#include <stdexcept>

namespace lagwise::cli {
namespace {

/// Of "2x", "0.5x" or "800".
int64_t length_of(const std::string& word, int64_t trained) {
  constexpr double kLongest = 1e9;
  const bool relative = word.ends_with('x');
  const char* last = word.data() + word.size() - (relative ? 1 : 0);
  double number = 0;
  const auto [end, error] = std::from_chars(word.data(), last, number);
  const double tokens = std::floor(relative ? number * double(trained) : number);
  const bool whole = relative || number == tokens;
  if (word.empty() || error != std::errc() || end != last || !whole ||
      !(tokens >= 1 && tokens <= kLongest))
    throw std::invalid_argument(
        "--lengths: expected multiples of the training length such as 2x, numbers of "
        "tokens such as 800, or none; got '" +
        word + "'");
  return static_cast<int64_t>(tokens);
}

}  // namespace

std::vector<int64_t> lengths_asked(const std::string& text, int64_t trained) {
  if (text == "none") return {};
  std::vector<int64_t> lengths;
  std::stringstream words(text + ",");
  for (std::string word; std::getline(words, word, ',');)
    lengths.push_back(length_of(word, trained));
  std::sort(lengths.begin(), lengths.end());
  lengths.erase(std::unique(lengths.begin(), lengths.end()), lengths.end());
  return lengths;
}

}  // namespace lagwise::cli
