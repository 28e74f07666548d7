#include "lagwise/cli/generate/asked_text.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/path_kind.h"
#include "lagwise/data/sets/text_file.h"
#include "lagwise/data/text/code_point.h"

namespace lagwise::cli {

std::string asked_text(const std::string& file) {
  std::ifstream opened;  // a pipe will do
  if (file != "-") {
    if (data::is_folder(file))
      throw DataError(file, -1, "a readable file, got a folder");
    opened.open(file, std::ios::binary);
    if (!opened)
      throw DataError(file, -1,
                      std::string("a readable file: ") + std::strerror(errno));
  }
  std::istream& in = file == "-" ? std::cin : opened;
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  data::check_text(file == "-" ? "stdin" : file, data::bytes_of(text));
  return text;
}

std::vector<std::string> asked_lines(const std::string& file, const std::string& text,
                                     int64_t most) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty())
      throw DataError(file + ", line " + std::to_string(lines.size() + 1), -1,
                      "a source, got an empty line");
    if (!data::is_utf8(line))
      throw DataError(file + ", line " + std::to_string(lines.size() + 1), -1,
                      "text in UTF-8 (iconv can change other encodings to it)");
    lines.push_back(line);
  }
  if (lines.empty() || std::ssize(lines) > most)
    throw DataError(file, -1,
                    "1 to " + std::to_string(most) + " sources, one a line, got " +
                        std::to_string(lines.size()));
  return lines;
}

}  // namespace lagwise::cli
