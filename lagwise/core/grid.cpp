#include "lagwise/core/grid.h"

#include <algorithm>
#include <stdexcept>

namespace lagwise {
namespace {

[[noreturn]] void refuse(std::string_view what, const std::string& why,
                         std::string_view part) {
  throw std::invalid_argument(std::string(what) + ": " + why + " in '" +
                              std::string(part) + "'");
}

std::string_view trimmed(std::string_view text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

std::vector<std::string_view> parted(std::string_view text, char mark) {
  std::vector<std::string_view> parts;
  for (;;) {
    const size_t end = text.find(mark);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == text.npos) return parts;
    text.remove_prefix(end + 1);
  }
}

/// "norms=sqrt_d": an option, not the name of a thing.
bool goes_on(std::string_view part) {
  const size_t mark = part.find_first_of(":=");
  return mark != part.npos && part[mark] == '=';
}

/// Replaces the first brace by each of its choices, then the next ones.
void expand(std::string_view what, const std::string& item,
            std::vector<std::string>& to) {
  const size_t open = item.find_first_of("{}");
  if (open == item.npos) {
    if (std::find(to.begin(), to.end(), item) == to.end()) to.push_back(item);
    return;
  }
  const size_t close = item.find_first_of("{}", open + 1);
  if (item[open] == '}' || close == item.npos)
    refuse(what, "expected a partner to every brace", item);
  if (item[close] == '{') refuse(what, "expected no brace inside another", item);
  const std::string before = item.substr(0, open), after = item.substr(close + 1);
  for (const std::string_view choice :
       parted(std::string_view(item).substr(open + 1, close - open - 1), ',')) {
    if (choice.empty()) refuse(what, "expected no empty choice", item);
    expand(what, before + std::string(choice) + after, to);
  }
}

}  // namespace

std::vector<std::string> split_specs(std::string_view what, std::string_view text,
                                     char mark) {
  std::vector<std::string> all;
  for (const std::string_view part : parted(text, mark)) {
    if (part.empty())
      refuse(what, std::string("expected a name between every two '") + mark + "'",
             text);
    if (goes_on(part) && !all.empty())
      all.back() += mark + std::string(part);
    else
      all.emplace_back(part);
  }
  return all;
}

std::vector<std::string> expand_grid(std::string_view what, std::string_view text) {
  std::vector<std::string> specs;
  for (const std::string& item : split_specs(what, text, ';'))
    expand(what, item, specs);
  return specs;
}

std::string name_for_file(std::string_view text) {
  static constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._=,-";
  static constexpr char kDigits[] = "0123456789ABCDEF";
  std::string name;
  for (const char c : text) {
    if (kPlain.find(c) != kPlain.npos) {
      name += c;
    } else if (c == ':') {
      name += '+';
    } else {
      const auto byte = static_cast<unsigned char>(c);
      name += {'%', kDigits[byte / 16], kDigits[byte % 16]};
    }
  }
  return name;
}

}  // namespace lagwise
