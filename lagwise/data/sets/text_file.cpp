#include "lagwise/data/sets/text_file.h"

#include <nlohmann/json.hpp>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/gunzip.h"
#include "lagwise/data/formats/json_lines.h"
#include "lagwise/data/text/code_point.h"

namespace lagwise::data {
namespace {

// The programs that unpack what begins like this.
struct Packed {
  std::string_view start, program;
};
constexpr Packed kPacked[] = {{"PK\x03\x04", "unzip"},
                              {"\xFD\x37zXZ", "unxz"},
                              {"\x1F\x8B", "gunzip"},
                              {"BZh", "bunzip2"},
                              {"\x28\xB5\x2F\xFD", "unzstd"}};

/// `ends`: of each text.
std::vector<uint8_t> texts_of_lines(const std::string& file, Bytes bytes,
                                    std::vector<size_t>& ends) {
  std::vector<uint8_t> texts;
  JsonLines lines(file, bytes);
  for (nlohmann::json row; lines.next(row);) {
    const std::string text = lines.text(row, "text");
    texts.insert(texts.end(), text.begin(), text.end());
    if (!text.ends_with('\n')) texts.push_back('\n');
    ends.push_back(texts.size());
  }
  return texts;
}

}  // namespace

void check_text(const std::string& file, Bytes bytes) {
  constexpr size_t kBeginning = 1 << 16;
  const std::string_view front = text_of(bytes).substr(0, kBeginning);
  for (const Packed& packed : kPacked)
    if (front.starts_with(packed.start))
      throw DataError(
          file, 0,
          "text; this is packed (" + std::string(packed.program) + " unpacks it)");
  if (front.starts_with("\xFF\xFE") || front.starts_with("\xFE\xFF"))
    throw DataError(file, 0,
                    "text in UTF-8, got UTF-16 (iconv -f UTF-16 -t UTF-8 changes it)");
  const size_t zero = front.find('\0');
  if (zero != front.npos && !begins_as_utf8(text_of(bytes), kBeginning))
    throw DataError(
        file, static_cast<int64_t>(zero),
        "text, got a byte 0 in what is no UTF-8 (iconv changes UTF-16 to it)");
}

TextFile::TextFile(const std::string& file) : mapped_(file) {
  if (is_gzip(mapped_.bytes()))
    made_ = gunzip(file, mapped_.bytes(), kMostUnpackedText), read_ = true;
  check_text(file, bytes());
  if (file.ends_with(".jsonl") || file.ends_with(".jsonl.gz"))
    made_ = texts_of_lines(file, bytes(), row_ends_), read_ = true;
}

std::vector<Bytes> TextFile::rows() const {
  if (row_ends_.empty()) return {bytes()};
  std::vector<Bytes> rows;
  size_t start = 0;
  for (const size_t end : row_ends_) {
    rows.push_back(bytes().subspan(start, end - start));
    start = end;
  }
  return rows;
}

bool is_text_name(const std::string& file) {
  for (const char* ending : {".txt", ".txt.gz", ".jsonl", ".jsonl.gz"})
    if (file.ends_with(ending)) return true;
  return false;
}

}  // namespace lagwise::data
