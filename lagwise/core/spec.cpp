#include "lagwise/core/spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <stdexcept>

#include "lagwise/core/nearest.h"

namespace lagwise {
namespace {

bool is_word(std::string_view text) {
  // Not std::isalnum: that one asks the locale.
  const auto allowed = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           c == '_' || c == '-' || c == '.';
  };
  return !text.empty() && std::all_of(text.begin(), text.end(), allowed);
}

std::string join(const std::vector<std::string>& words) {
  std::string line;
  for (const std::string& word : words) line += (line.empty() ? "" : ", ") + word;
  return line;
}

// The whole text as a number, or false.
template <class T>
bool read_number(std::string_view text, T& number) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stop == end;
}

}  // namespace

Spec::Spec(std::string_view text) {
  // Messages quote the text, and a message is one line.
  const auto control = [](char c) { return static_cast<unsigned char>(c) < ' '; };
  const auto at = std::find_if(text.begin(), text.end(), control);
  if (at != text.end())
    throw std::invalid_argument("expected name:key=value,... in one line, got byte " +
                                std::to_string(static_cast<int>(*at)) + " at " +
                                std::to_string(at - text.begin()));
  const size_t colon = text.find(':');
  name_ = text.substr(0, colon);
  if (!is_word(name_))
    throw std::invalid_argument(
        "'" + std::string(text) +
        "': expected name:key=value,... with a name of letters, "
        "digits, '_', '-' and '.'");
  if (colon == std::string_view::npos) return;

  std::string_view rest = text.substr(colon + 1);
  while (true) {
    const size_t comma = rest.find(',');
    read_option(rest.substr(0, comma));
    if (comma == std::string_view::npos) return;
    rest.remove_prefix(comma + 1);
  }
}

void Spec::read_option(std::string_view option) {
  const size_t equals = option.find('=');
  const std::string_view key = option.substr(0, equals);
  if (equals == std::string_view::npos || !is_word(key) || equals + 1 == option.size())
    throw std::invalid_argument(name_ + ": expected key=value, got '" +
                                std::string(option) + "'");
  const bool added = given_.emplace(key, option.substr(equals + 1)).second;
  if (!added)
    throw std::invalid_argument(name_ + ": option '" + std::string(key) +
                                "' is given twice");
}

const std::string* Spec::find(std::string_view key) {
  if (std::find(legal_.begin(), legal_.end(), key) == legal_.end())
    legal_.emplace_back(key);
  const auto at = given_.find(key);
  return at == given_.end() ? nullptr : &at->second;
}

void Spec::refuse(std::string_view key, std::string_view value,
                  const std::string& expected) const {
  throw std::invalid_argument(name_ + ": option '" + std::string(key) + "' is '" +
                              std::string(value) + "', expected " + expected);
}

std::string Spec::take(std::string_view key, std::string_view fallback) {
  const std::string* value = find(key);
  return value ? *value : std::string(fallback);
}

int64_t Spec::take(std::string_view key, int64_t fallback) {
  const std::string* value = find(key);
  if (!value) return fallback;
  int64_t number = 0;
  if (!read_number(*value, number)) refuse(key, *value, "a whole number");
  return number;
}

double Spec::take(std::string_view key, double fallback) {
  const std::string* value = find(key);
  if (!value) return fallback;
  double number = 0.0;
  if (!read_number(*value, number) || !std::isfinite(number))
    refuse(key, *value, "a finite number");
  return number;
}

bool Spec::take(std::string_view key, bool fallback) {
  const std::string* value = find(key);
  if (!value) return fallback;
  if (*value != "true" && *value != "false") refuse(key, *value, "true or false");
  return *value == "true";
}

std::string Spec::take_choice(std::string_view key, std::string_view fallback,
                              const std::vector<std::string>& legal) {
  const std::string value = take(key, fallback);
  if (std::find(legal.begin(), legal.end(), value) == legal.end())
    refuse(key, value, "one of " + join(legal) + did_you_mean(value, legal));
  return value;
}

void Spec::finish() const {
  for (const auto& [key, value] : given_) {
    if (std::find(legal_.begin(), legal_.end(), key) != legal_.end()) continue;
    const std::string options =
        legal_.empty() ? "it takes no options" : "its options are " + join(legal_);
    const std::string suggestion = did_you_mean(key, legal_);
    throw std::invalid_argument(name_ + ": unknown option '" + key + "'" +
                                (suggestion.empty() ? "; " : suggestion + " ") +
                                options);
  }
}

std::string Spec::text() const {
  std::string text = name_;
  char separator = ':';
  for (const auto& [key, value] : given_) {
    text += separator + key + "=" + value;
    separator = ',';
  }
  return text;
}

}  // namespace lagwise
