#include "lagwise/data/sources/listops_expression.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace lagwise::data {
namespace {

[[noreturn]] void refuse_expression(const std::string& what) {
  throw std::invalid_argument("listops: expected " + what);
}

int32_t symbol_of(std::string_view word) {
  if (word.size() == 1 && word[0] >= '0' && word[0] <= '9')
    return kListopsDigit + (word[0] - '0');
  if (word == "]") return kListopsClose;
  const auto* const found = std::ranges::find(kListopsNames, word);
  if (found == std::end(kListopsNames))
    refuse_expression("a digit, an operator or a bracket, got '" +
                      std::string(word.substr(0, 20)) + "'");
  return kListopsOperator + static_cast<int32_t>(found - kListopsNames);
}

// Takes the digits behind the last operator away and puts its value there.
void reduce(std::vector<int32_t>& stack) {
  std::vector<int> arguments;
  while (!stack.empty() && stack.back() < kListopsOperator) {
    arguments.push_back(stack.back() - kListopsDigit);
    stack.pop_back();
  }
  if (stack.empty() || arguments.empty())
    refuse_expression("an operator with arguments before ]");
  stack.back() =
      kListopsDigit + listops_apply(stack.back() - kListopsOperator, arguments);
}

}  // namespace

std::vector<int32_t> listops_symbols(std::string_view expression) {
  std::vector<int32_t> symbols;
  for (size_t at = 0; at < expression.size();) {
    const size_t end = std::min(expression.find(' ', at), expression.size());
    const std::string_view word = expression.substr(at, end - at);
    if (!word.empty() && word != "(" && word != ")") symbols.push_back(symbol_of(word));
    at = end + 1;
  }
  return symbols;
}

int listops_apply(int32_t op, std::span<int> arguments) {
  if (op == 0) return *std::ranges::min_element(arguments);
  if (op == 1) return *std::ranges::max_element(arguments);
  if (op == 3) return std::accumulate(arguments.begin(), arguments.end(), 0) % 10;
  std::ranges::sort(arguments);
  const size_t half = arguments.size() / 2;
  return arguments.size() % 2 == 1 ? arguments[half]
                                   : (arguments[half - 1] + arguments[half]) / 2;
}

int listops_value(std::span<const int32_t> symbols) {
  std::vector<int32_t> stack;
  for (const int32_t symbol : symbols) {
    if (symbol <= kListopsPad || symbol >= kListopsSymbols)
      refuse_expression("symbols from 1 to 15");
    if (symbol == kListopsClose)
      reduce(stack);
    else
      stack.push_back(symbol);
  }
  if (stack.size() != 1 || stack[0] >= kListopsOperator)
    refuse_expression("one whole expression");
  return stack[0] - kListopsDigit;
}

}  // namespace lagwise::data
