#include "lagwise/tasks/token_text.h"

#include <stdexcept>

namespace lagwise {
namespace {

[[noreturn]] void refuse(const std::string& what) {
  throw std::invalid_argument("this task " + what +
                              "; expected one that generates, such as language");
}

}  // namespace

std::vector<int64_t> TokenText::encode(const std::string&) const {
  refuse("takes no prompt");
}

std::string TokenText::decode(const std::vector<int64_t>&) const {
  refuse("writes no text");
}

bool TokenText::asks_for_data(const std::string&) const { return false; }

std::unique_ptr<Grammar> TokenText::grammar() const { return nullptr; }

int64_t TokenText::first_bars(const std::vector<int64_t>& tokens, int64_t bars) const {
  if (const data::TokenScheme* scheme = music())
    return scheme->first_bars(std::vector<int32_t>(tokens.begin(), tokens.end()), bars);
  throw std::invalid_argument(
      "a prompt in bars: expected a run of music or harmonise, this is one of another "
      "task");
}

bool is_piece_name(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon == 0 || colon == text.npos || colon + 1 == text.size()) return false;
  const auto all = [](const std::string& part, const char* legal) {
    return part.find_first_not_of(legal) == part.npos;
  };
  return all(text.substr(0, colon), "abcdefghijklmnopqrstuvwxyz") &&
         all(text.substr(colon + 1), "0123456789:");
}

}  // namespace lagwise
