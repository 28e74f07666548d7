#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lagwise::data {

/// The symbols of ListOps, numbered as a model sees them: 0 is padding.
///
///     1 .. 10 the digits 0 .. 9, 11 .. 14 the operators, 15 the closing bracket
///
/// MIN, MAX; MED the median, rounded down; SM the sum modulo 10.
constexpr int32_t kListopsPad = 0, kListopsDigit = 1, kListopsOperator = 11,
                  kListopsClose = 15, kListopsSymbols = 16;
constexpr const char* kListopsNames[] = {"[MIN", "[MAX", "[MED", "[SM"};

/// The symbols of an expression as files write it: parentheses say nothing and go.
/// std::invalid_argument for a word that is no symbol.
std::vector<int32_t> listops_symbols(std::string_view expression);

/// Its value, 0 .. 9; std::invalid_argument for what is not one whole expression.
int listops_value(std::span<const int32_t> symbols);

/// What an operator (0 .. 3) makes of its arguments, which it may reorder.
int listops_apply(int32_t op, std::span<int> arguments);

}  // namespace lagwise::data
