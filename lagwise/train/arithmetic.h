#pragma once

#include <map>
#include <string>

namespace lagwise {

/// Who computes, by role: {"torch", "1.13.0"}, {"products", "oneDNN 2.6.3"}, {"blas",
/// "OpenBLAS 0.3.21 ..."}. Others sum in another order, and so round otherwise: a run
/// that changes them on its way ends with other last bits.
using Arithmetic = std::map<std::string, std::string>;
Arithmetic arithmetic_here();

/// What differs, for people: "torch 2.13.0 in place of 1.13.0; ...". Empty where nothing
/// does; a role that one of them does not name is not compared.
std::string arithmetic_change(const Arithmetic& before, const Arithmetic& now);

}  // namespace lagwise
