#include "lagwise/cli/checks.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>
#include <string>

#include "lagwise/data/text/token_kind.h"

namespace lagwise::cli {

CLI::Validator whole_number(int least, int most) {
  const auto complaint = [least, most](const std::string& text) -> std::string {
    int value = 0;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool plain = read.ec == std::errc() && std::to_string(value) == text;
    if (plain && value >= least && value <= most) return "";
    return fmt::format("expected a whole number from {} to {}, got '{}'", least, most,
                       text);
  };
  return CLI::Validator(complaint, "");
}

CLI::Validator number(double least, double most) {
  const auto complaint = [least, most](const std::string& text) -> std::string {
    double value = 0;
    const char* last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    const bool plain = error == std::errc() && end == last;
    if (plain && value >= least && value <= most) return "";
    return fmt::format("expected a number from {:g} to {:g}, got '{}'", least, most,
                       text);
  };
  return CLI::Validator(complaint, "");
}

CLI::Validator fraction() {
  const auto complaint = [](const std::string& text) -> std::string {
    double value = -1;
    const char* last = text.data() + text.size();
    const auto read = std::from_chars(text.data(), last, value);
    if (read.ec == std::errc() && read.ptr == last && value >= 0 && value < 0.5)
      return "";
    return fmt::format("expected a fraction from 0 to below 0.5, got '{}'", text);
  };
  return CLI::Validator(complaint, "");
}

CLI::Validator token_kind() {
  const auto complaint = [](const std::string& text) -> std::string {
    try {
      data::parse_token_kind(text);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  return CLI::Validator(complaint, "");
}

CLI::Validator file_name() {
  const auto complaint = [](const std::string& text) -> std::string {
    return text.empty() ? "expected the name of a file, got ''" : "";
  };
  return CLI::Validator(complaint, "");
}

}  // namespace lagwise::cli
