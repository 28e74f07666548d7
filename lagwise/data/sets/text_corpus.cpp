#include "lagwise/data/sets/text_corpus.h"

#include <algorithm>
#include <filesystem>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/path_kind.h"

namespace lagwise::data {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> text_files(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code failed;
  for (fs::recursive_directory_iterator at(folder, failed), end; !failed && at != end;
       at.increment(failed))
    if (is_text_name(at->path().string()) && !is_folder(at->path().string()))
      files.push_back(at->path().string());
  if (failed) throw DataError(folder, -1, "a folder of text: " + failed.message());
  std::sort(files.begin(), files.end());
  return files;
}

bool is_blank(std::string_view line) {
  return line.find_first_not_of(" \r") == std::string_view::npos;
}

// " = Title = ", not " = = Section = = ".
bool is_title(std::string_view line) {
  return line.size() > 6 && line.starts_with(" = ") && line.ends_with(" = ") &&
         !line.starts_with(" = = ") && !line.ends_with(" = = ");
}

}  // namespace

std::vector<TextFile> open_text(const std::string& path) {
  std::vector<TextFile> files;
  size_t bytes = 0;
  const bool folder = is_folder(path);
  for (const std::string& file : folder ? text_files(path) : std::vector{path}) {
    files.emplace_back(file);
    bytes += files.back().bytes().size();
  }
  if (bytes == 0)
    throw DataError(path, -1, folder ? "text in .txt or .jsonl files" : "text");
  return files;
}

TextFile open_wikitext(const std::string& folder, const std::string& split) {
  const std::string tokens = folder + "/wiki." + split + ".tokens";
  const std::string raw = folder + "/wiki." + split + ".raw";
  return TextFile(!is_there(tokens) && is_there(raw) ? raw : tokens);
}

int64_t wikitext_words(Bytes text) {
  int64_t words = 0;
  bool inside = false;
  for (const uint8_t byte : text) {
    const bool blank = byte == ' ' || (byte >= '\t' && byte <= '\r');
    words += (!blank && !inside) + (byte == '\n');
    inside = !blank;
  }
  return words;
}

std::vector<Bytes> wikitext_articles(Bytes text) {
  const std::string_view all = text_of(text);
  std::vector<size_t> starts;
  std::string_view before, line;  // the two lines before the one at `at`
  size_t line_start = 0;
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\n', at), all.size());
    const std::string_view next = all.substr(at, end - at);
    if (is_title(line) && is_blank(before) && is_blank(next))
      starts.push_back(line_start);
    before = line;
    line = next;
    line_start = at;
    at = end + 1;
  }
  if (starts.empty()) return {};
  starts[0] = 0;
  std::vector<Bytes> articles;
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t end = i + 1 < starts.size() ? starts[i + 1] : all.size();
    articles.push_back(text.subspan(starts[i], end - starts[i]));
  }
  return articles;
}

std::vector<Bytes> documents_of(const TextFile& file) {
  std::vector<Bytes> rows = file.rows();
  if (rows.size() > 1) return rows;
  std::vector<Bytes> articles = wikitext_articles(file.bytes());
  return articles.size() > 1 ? articles : rows;
}

}  // namespace lagwise::data
