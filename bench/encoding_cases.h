#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/comparison.h"

namespace lagwise::bench {

/// What `lagwise bench encodings` measures. A family of encodings is one file,
/// x_cases.cpp, which registers one function:
///
///     void x_cases(Comparer& comparer, int threads) { comparer.measure({...}); }
///     const RegisterEncodingCases registered("x", x_cases);
struct RegisterEncodingCases {
  using Run = void (*)(Comparer& comparer, int threads);
  RegisterEncodingCases(const char* family, Run run);
};

struct EncodingPlan {
  int threads = 2;
  bool quick = false;             ///< shorter sequences, fewer repetitions
  std::vector<std::string> only;  ///< families to measure; empty: all
  std::function<void(const std::string&)> progress = [](const std::string&) {};
};

/// Measures every family, by name. std::invalid_argument lists the legal ones.
std::vector<BenchRow> run_encoding_cases(const EncodingPlan& plan);

}  // namespace lagwise::bench
