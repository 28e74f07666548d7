#include "lagwise/train/frozen.h"

#include <fnmatch.h>

#include <sstream>
#include <stdexcept>

namespace lagwise {
namespace {

constexpr size_t kNamesShown = 6;

std::vector<std::string> listed_patterns(const std::string& text) {
  std::vector<std::string> patterns;
  std::istringstream in(text);
  for (std::string one; std::getline(in, one, ',');) {
    const size_t begin = one.find_first_not_of(' '), end = one.find_last_not_of(' ');
    if (begin != one.npos) patterns.push_back(one.substr(begin, end - begin + 1));
  }
  return patterns;
}

[[noreturn]] void refuse_pattern(const std::string& pattern,
                                 const std::vector<NamedTensor>& parameters) {
  std::string names;
  for (size_t i = 0; i < parameters.size() && i < kNamesShown; ++i)
    names += (i ? ", " : "") + parameters[i].name;
  if (parameters.size() > kNamesShown) names += ", ..";
  throw std::invalid_argument(
      "train.freeze: expected patterns of parameters, such as " + names + "; '" +
      pattern + "' matches none");
}

}  // namespace

int64_t freeze(const std::string& patterns,
               const std::vector<NamedTensor>& parameters) {
  std::vector<bool> frozen(parameters.size());
  for (const std::string& pattern : listed_patterns(patterns)) {
    bool found = false;
    for (size_t i = 0; i < parameters.size(); ++i)
      if (fnmatch(pattern.c_str(), parameters[i].name.c_str(), 0) == 0)
        frozen[i] = found = true;
    if (!found) refuse_pattern(pattern, parameters);
  }
  int64_t numbers = 0, all = 0;
  for (size_t i = 0; i < parameters.size(); ++i) {
    all += parameters[i].tensor.numel();
    if (frozen[i]) numbers += parameters[i].tensor.numel();
  }
  if (all > 0 && numbers == all)
    throw std::invalid_argument(
        "train.freeze: expected to leave something to train, '" + patterns +
        "' matches every parameter");
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!frozen[i]) continue;
    at::Tensor same = parameters[i].tensor;  // a handle: the parameter itself
    same.set_requires_grad(false);
  }
  return numbers;
}

}  // namespace lagwise
