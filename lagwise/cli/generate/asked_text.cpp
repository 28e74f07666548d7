#include "lagwise/cli/generate/asked_text.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "lagwise/core/errors.h"

namespace lagwise::cli {

std::string asked_text(const std::string& file) {
  if (file == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  std::error_code ignored;
  if (std::filesystem::is_directory(file, ignored))
    throw DataError(file, -1, "a file, got a folder");
  std::ifstream in(file, std::ios::binary);  // a pipe will do
  if (!in)
    throw DataError(file, -1, std::string("a readable file: ") + std::strerror(errno));
  return {std::istreambuf_iterator<char>(in), {}};
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
    lines.push_back(line);
  }
  if (lines.empty() || std::ssize(lines) > most)
    throw DataError(file, -1,
                    "1 to " + std::to_string(most) + " sources, one a line, got " +
                        std::to_string(lines.size()));
  return lines;
}

}  // namespace lagwise::cli
