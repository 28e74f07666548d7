#include "tests/golden_runner/case_list.h"

#include <algorithm>
#include <fstream>

namespace lagwise::golden {
namespace {

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r");
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

bool matches(const std::string& entry, const GoldenCase& golden) {
  if (entry == golden.method || entry == golden.id) return true;
  const std::string method = golden.method + " [";
  if (!entry.starts_with(method) || !entry.ends_with(']')) return false;
  return golden.has(entry.substr(method.size(), entry.size() - method.size() - 1));
}

}  // namespace

CaseList::CaseList(const std::string& file) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    const std::string entry = trimmed(line.substr(0, line.find('#')));
    if (!entry.empty()) entries_.push_back(entry);
  }
}

bool CaseList::contains(const GoldenCase& golden) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const std::string& entry) { return matches(entry, golden); });
}

}  // namespace lagwise::golden
