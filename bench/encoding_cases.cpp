#include "bench/encoding_cases.h"

#include <c10/core/GradMode.h>

#include <algorithm>

#include "lagwise/core/registry.h"

namespace lagwise::bench {
namespace {

struct Family {
  std::string_view name;
  RegisterEncodingCases::Run run;
};

Registry<Family>& registry() {
  static Registry<Family> registry("family of encodings");
  return registry;
}

}  // namespace

RegisterEncodingCases::RegisterEncodingCases(const char* family, Run run) {
  registry().add({family, run});
}

std::vector<BenchRow> run_encoding_cases(const EncodingPlan& plan) {
  set_blas_threads(1);  // OpenBLAS keeps a pool of its own, which would spin
  for (const std::string& name : plan.only) registry().find(name);
  Comparer comparer(plan.quick, plan.progress);
  const c10::NoGradGuard no_graph;  // cases that differentiate switch it on again
  for (const Family& family : registry().rows()) {
    const auto named = std::find(plan.only.begin(), plan.only.end(), family.name);
    if (plan.only.empty() || named != plan.only.end())
      family.run(comparer, plan.threads);
  }
  return comparer.rows();
}

}  // namespace lagwise::bench
