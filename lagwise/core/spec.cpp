#include "lagwise/core/spec.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <stdexcept>
#include <utility>

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

#ifndef __cpp_lib_to_chars  // libc++ 14, of the WebAssembly module: whole numbers alone
bool read_number(std::string_view text, double& number) {
  const bool plain = text.find_first_not_of("0123456789.eE-+") == text.npos;
  if (!plain || text.empty() || text[0] == '+') return false;
  const std::string copy(text);
  char* stop = nullptr;
  number = std::strtod(copy.c_str(), &stop);
  return stop == copy.c_str() + copy.size() && std::isfinite(number);
}
#endif

// The fewest digits that read back as the same number: 0.001.
std::string shortest(double number) {
  char text[32];
  const auto [end, error] = std::to_chars(text, text + sizeof(text), number);
  return error == std::errc() ? std::string(text, end) : std::string();
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

const std::string* Spec::find(std::string_view key, std::string fallback,
                              std::string expected) {
  const auto taken = [&](const Option& option) { return option.key == key; };
  if (std::none_of(legal_.begin(), legal_.end(), taken))
    legal_.push_back({std::string(key), std::move(fallback), std::move(expected)});
  const auto at = given_.find(key);
  return at == given_.end() ? nullptr : &at->second;
}

void Spec::refuse(std::string_view key, std::string_view value) const {
  const auto taken = [&](const Option& option) { return option.key == key; };
  const auto option = std::find_if(legal_.begin(), legal_.end(), taken);
  throw std::invalid_argument(name_ + ": option '" + std::string(key) + "' is '" +
                              std::string(value) + "', expected " + option->expected);
}

std::vector<std::string> Spec::keys() const {
  std::vector<std::string> keys;
  for (const Option& option : legal_) keys.push_back(option.key);
  return keys;
}

std::string Spec::take(std::string_view key, std::string_view fallback) {
  const std::string* value = find(key, std::string(fallback), "text");
  return value ? *value : std::string(fallback);
}

int64_t Spec::take(std::string_view key, int64_t fallback) {
  const std::string* value = find(key, std::to_string(fallback), "a whole number");
  if (!value) return fallback;
  int64_t number = 0;
  if (!read_number(*value, number)) refuse(key, *value);
  return number;
}

double Spec::take(std::string_view key, double fallback) {
  const std::string* value = find(key, shortest(fallback), "a finite number");
  if (!value) return fallback;
  double number = 0.0;
  if (!read_number(*value, number) || !std::isfinite(number)) refuse(key, *value);
  return number;
}

bool Spec::take(std::string_view key, bool fallback) {
  const std::string* value = find(key, fallback ? "true" : "false", "true or false");
  if (!value) return fallback;
  if (*value != "true" && *value != "false") refuse(key, *value);
  return *value == "true";
}

std::string Spec::take_choice(std::string_view key, std::string_view fallback,
                              const std::vector<std::string>& legal) {
  const std::string* given = find(key, std::string(fallback), "one of " + join(legal));
  const std::string value = given ? *given : std::string(fallback);
  if (std::find(legal.begin(), legal.end(), value) != legal.end()) return value;
  const std::string meant = did_you_mean(value, legal);
  throw std::invalid_argument(name_ + ": option '" + std::string(key) + "' is '" +
                              value + "', expected one of " + join(legal) + meant);
}

void Spec::finish() const {
  for (const auto& [key, value] : given_) {
    const std::vector<std::string> legal = keys();
    if (std::find(legal.begin(), legal.end(), key) != legal.end()) continue;
    const std::string options =
        legal.empty() ? "it takes no options" : "its options are " + join(legal);
    const std::string suggestion = did_you_mean(key, legal);
    throw std::invalid_argument(name_ + ": unknown option '" + key + "'" +
                                (suggestion.empty() ? "; " : suggestion + " ") +
                                options);
  }
}

void Spec::assume(const Spec& other) {
  given_.insert(other.given_.begin(), other.given_.end());
}

std::string Spec::text() const { return written(given_); }

std::string Spec::full_text() const {
  Values values = given_;
  for (const Option& option : legal_)
    if (!option.fallback.empty()) values.emplace(option.key, option.fallback);
  return written(values);
}

std::string Spec::short_text() const {
  Values values = given_;
  for (const Option& option : legal_) {
    const auto at = values.find(option.key);
    if (at != values.end() && at->second == option.fallback) values.erase(at);
  }
  return written(values);
}

std::string Spec::written(const Values& values) const {
  std::string text = name_;
  char separator = ':';
  for (const auto& [key, value] : values) {
    text += separator + key + "=" + value;
    separator = ',';
  }
  return text;
}

}  // namespace lagwise
