#include "lagwise/data/formats/json_lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "lagwise/data/formats/strict_json.h"

namespace lagwise::data {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr size_t kMostLineBytes = size_t{64} << 20;

}  // namespace

JsonLines::JsonLines(const std::string& file, Bytes bytes)
    : file_(file), rest_(text_of(bytes)) {
  if (rest_.starts_with(kByteOrderMark)) at_ = kByteOrderMark.size();
  rest_.remove_prefix(at_);
}

bool JsonLines::next(nlohmann::json& row) {
  while (!rest_.empty()) {
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    const std::string_view text = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    start_ = at_, at_ += end + 1, ++line_;
    if (text.find_first_not_of(" \t\r") == text.npos) continue;
    if (text.size() > kMostLineBytes) throw refusal("at most 64 MB");
    try {
      row = parse_strict_json(file_, start_, bytes_of(text),
                              {.depth = 16, .fractions = true});
    } catch (const DataError& error) {
      throw DataError(file_ + ", line " + std::to_string(line_), error.offset(),
                      "one JSON object a line: " +
                          std::string(error.what()).substr(error.file().size() + 2));
    }
    if (!row.is_object()) throw refusal("an object");
    return true;
  }
  return false;
}

std::string JsonLines::text(const nlohmann::json& row, const std::string& name) const {
  if (const auto found = row.find(name); found != row.end() && found->is_string())
    return found->get<std::string>();
  throw refusal("a text at '" + name + "'");
}

DataError JsonLines::refusal(const std::string& expected) const {
  return {file_ + ", line " + std::to_string(line_), static_cast<int64_t>(start_),
          expected};
}

}  // namespace lagwise::data
