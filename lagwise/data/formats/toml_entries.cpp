#include "lagwise/data/formats/toml_entries.h"

// Header-only here and nowhere else, and without exceptions: a failure is a result.
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ENABLE_WINDOWS_COMPAT 0
// Its parser asserts that a time begins with a digit, and then reports one that does
// not.
#define TOML_ASSERT(condition) static_assert(true)
#include <toml++/toml.h>

#include <algorithm>
#include <string_view>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/text/code_point.h"

namespace lagwise::data {
namespace {

constexpr size_t kMostTomlBytes = 1 << 20;
constexpr int kMostTables = 8;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

[[noreturn]] void refuse(const std::string& file, int64_t line,
                         const std::string& expected) {
  throw DataError(line > 0 ? file + ", line " + std::to_string(line) : file, -1,
                  expected);
}

int64_t line_of(const toml::node& node) {
  return static_cast<int64_t>(node.source().begin.line);
}

/// A text whose bytes beyond ASCII are written in ASCII, each as a mark and two digits.
/// Debian's parser looks for the end of what it does not understand across all quotes, and
/// with some letters beyond ASCII reaches code there that it calls unreachable: so it gets
/// to see none. The mark is the text's own hash, so that the text does not hold it, not
/// even where escapes spell something else than they are.
class InAscii {
 public:
  explicit InAscii(std::string_view text)
      : mark_("z" + hash_text(fnv1a(bytes_of(text)))) {
    for (const char c : text) {
      if (static_cast<unsigned char>(c) < 0x80) {
        text_ += c;
        continue;
      }
      text_ += mark_;
      for (const int shift : {4, 0})
        text_ += kDigits[static_cast<unsigned char>(c) >> shift & 15];
    }
  }

  const std::string& text() const { return text_; }

  /// A part of the text as it was.
  std::string back(std::string_view part) const {
    std::string bytes;
    for (size_t at = 0; at < part.size();) {
      const std::string_view rest = part.substr(at);
      if (!rest.starts_with(mark_) || rest.size() < mark_.size() + 2) {
        bytes += part[at++];
        continue;
      }
      const auto digit = [&](size_t i) {
        return static_cast<unsigned>(kDigits.find(rest[mark_.size() + i]));
      };
      bytes += static_cast<char>(digit(0) << 4 | digit(1));
      at += mark_.size() + 2;
    }
    return bytes;
  }

 private:
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string mark_, text_;
};

/// The line of the first byte that is no UTF-8; 0: there is none.
int64_t line_of_no_utf8(std::string_view text) {
  int64_t line = 1;
  for (size_t at = 0; at < text.size();) {
    const CodePoint point = first_code_point(text.substr(at));
    if (!point.valid) return line;
    line += text[at] == '\n';
    at += point.bytes;
  }
  return 0;
}

/// The line of the first byte beyond ASCII that stands neither in quotes nor in a
/// comment, which TOML 1.0 has nowhere; 0: there is none.
int64_t line_of_strange_key(std::string_view text) {
  int64_t line = 1;
  std::string_view open;  // the quotes of the text we are in; "#": a comment
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view rest = text.substr(i);
    if (c == '\n') {
      ++line;
      if (open.size() == 1) open = {};  // of one line, even where its end is missing
    } else if (open.empty()) {
      if (static_cast<unsigned char>(c) >= 0x80) return line;
      if (rest.starts_with("\"\"\"") || rest.starts_with("'''"))
        open = rest.substr(0, 3), i += 2;
      else if (c == '"' || c == '\'' || c == '#')
        open = rest.substr(0, 1);
    } else if (c == '\\' && open[0] == '"') {
      if (i + 1 < text.size() && text[i + 1] != '\n') ++i;
    } else if (open != "#" && rest.starts_with(open)) {
      i += open.size() - 1;
      open = {};
    }
  }
  return 0;
}

/// Reads a tree of tables into a list of entries.
class Flattener {
 public:
  Flattener(const std::string& file, const InAscii& text) : file_(file), text_(text) {}

  void table(const toml::table& table, const std::string& path, int depth) {
    if (depth > kMostTables) refuse(file_, line_of(table), "fewer tables in tables");
    for (const auto& [key, node] : table) {
      std::string name = path;
      if (!path.empty()) name += '.';
      name += text_.back(key.str());
      if (const toml::table* inner = node.as_table())
        this->table(*inner, name, depth + 1);
      else
        entries.push_back({name, value(name, node), line_of(node)});
    }
  }

  std::vector<TomlEntry> entries;

 private:
  TomlEntry::Value value(const std::string& name, const toml::node& node) const {
    if (const auto* text = node.as_string()) return text_.back(text->get());
    if (const auto* whole = node.as_integer()) return whole->get();
    if (const auto* number = node.as_floating_point()) return number->get();
    if (const auto* flag = node.as_boolean()) return flag->get();
    if (const toml::array* list = node.as_array()) {
      std::vector<int64_t> numbers;
      for (const toml::node& item : *list) {
        if (!item.is_integer()) refuse_kind(name, item);
        numbers.push_back(item.as_integer()->get());
      }
      return numbers;
    }
    refuse_kind(name, node);
  }

  [[noreturn]] void refuse_kind(const std::string& name, const toml::node& node) const {
    refuse(
        file_, line_of(node),
        "'" + name + "' to be text, a number, true, false or a list of whole numbers");
  }

  const std::string& file_;
  const InAscii& text_;
};

}  // namespace

std::vector<TomlEntry> read_toml(const std::string& file, Bytes text) {
  if (text.size() > kMostTomlBytes) refuse(file, 0, "at most 1 MB of TOML");
  if (const int64_t line = line_of_strange_key(text_of(text)))
    refuse(file, line, "letters beyond ASCII to stand in quotes or comments");
  if (const int64_t line = line_of_no_utf8(text_of(text)))
    refuse(file, line, "TOML: text in UTF-8");
  std::string_view all = text_of(text);
  if (all.starts_with(kByteOrderMark)) all.remove_prefix(kByteOrderMark.size());
  const InAscii ascii(all);
  const toml::parse_result result = toml::parse(ascii.text(), file);
  if (!result) {
    std::string why = ascii.back(result.error().description());
    std::replace(why.begin(), why.end(), '\n', ' ');
    refuse(file, static_cast<int64_t>(result.error().source().begin.line),
           "TOML: " + why);
  }
  Flattener flat(file, ascii);
  flat.table(result.table(), "", 0);
  std::stable_sort(flat.entries.begin(), flat.entries.end(),
                   [](const auto& a, const auto& b) { return a.line < b.line; });
  return std::move(flat.entries);
}

std::string toml_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto code = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (code < 0x20 || code == 0x7f) {
      out += "\\u00";
      out += "0123456789abcdef"[code >> 4];
      out += "0123456789abcdef"[code & 15];
    } else {
      out += c;
    }
  }
  return out + "\"";
}

}  // namespace lagwise::data
