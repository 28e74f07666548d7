// `lagwise doctor`: what is installed, what the machine offers, what of it is used.

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lagwise/cli/blas_core.h"
#include "lagwise/cli/machine.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/machine.h"
#include "lagwise/dist/gloo_peers.h"
#include "lagwise/dist/own_host.h"
#include "lagwise/ops/matrix_product.h"
#include "lagwise/ops/torch/blas_threads.h"
#include "lagwise/study/versions.h"

namespace lagwise::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Fact {
  const char* section;
  const char* name;
  Json value;
};

/// Something that makes lagwise faster or larger, and whether it is there.
struct Feature {
  const char* name;
  bool on;
  std::string why;  ///< off: what is missing and how to get it; on: how to use it
};

/// The file of the BLAS, or its name where it is inside torch.
std::string blas() {
  if (const std::string name = ops::blas_name(); name.starts_with("MKL"))
    return name + ", inside torch";
  for (const char* name : {"libopenblas", "libmkl_rt", "libblis", "libblas"}) {
    const std::string file = loaded_library(name);
    if (!file.empty()) return file;
  }
  return "";
}

// Debian keeps the slow reference BLAS in a folder of its own.
bool is_reference_blas(const std::string& file) {
  return file.find("/blas/libblas") != std::string::npos;
}

std::string or_unknown(const std::string& text) {
  return text.empty() ? "unknown" : text;
}

std::vector<std::string> openmp_runtimes() {
  std::vector<std::string> all;
  for (const char* name : {"libgomp", "libiomp", "libomp"})
    for (const std::string& file : loaded_libraries(name)) all.push_back(file);
  return all;
}

/// How train.precision = "bf16" multiplies here.
const char* bf16_products() {
  switch (ops::best_short_product()) {
    case ops::ShortProduct::tiles:
      return "by the tiles of AMX";
    case ops::ShortProduct::instructions:
      return "by instructions of the CPU";
    case ops::ShortProduct::widening:
      break;
  }
  return "in f32 after rounding: this CPU or this build has no instructions for them";
}

std::vector<Fact> facts() {
  const Memory ram = memory();
  const std::vector<std::string> usable = usable_simd();
  return {
      {"versions", "lagwise", lagwise_version()},
      {"versions", "compiler", compiler_version()},
      {"versions", "torch", torch_version()},
      {"versions", "torch_library", or_unknown(loaded_library("libtorch_cpu"))},
      {"versions", "highway", highway_version()},
      {"versions", "matrix_product", ops::matrix_product_library()},
      {"versions", "blas", or_unknown(blas())},
      {"versions", "blas_core", or_unknown(blas_core())},
      {"machine", "cpu", or_unknown(cpu_model())},
      {"machine", "cores", usable_cores()},
      {"machine", "memory_bytes", ram.bytes},
      {"machine", "available_bytes", ram.available_bytes},
      {"machine", "cpu_features", cpu_features()},
      {"machine", "bf16_products", bf16_products()},
      {"simd", "chosen", usable.empty() ? "unknown" : usable.front()},
      {"simd", "usable", usable},
      {"simd", "compiled", compiled_simd()},
      {"threads", "torch", at::get_num_threads()},
      {"threads", "openmp", openmp_runtimes()},
      {"threads", "OMP_NUM_THREADS", environment("OMP_NUM_THREADS")},
      {"threads", "OPENBLAS_NUM_THREADS", environment("OPENBLAS_NUM_THREADS")},
      {"threads", "note",
       "OpenBLAS keeps a thread pool of its own, which torch's setting does not bind; "
       "set OPENBLAS_NUM_THREADS as well (MKL shares torch's threads)"},
  };
}

Feature simd_feature(const char* name, const char* target, const char* cpu_flag) {
  const auto has = [&](const std::vector<std::string>& list) {
    return std::find(list.begin(), list.end(), target) != list.end();
  };
  if (has(usable_simd()))
    return {name, true, fmt::format("the kernels use {}", usable_simd().front())};
  if (!has(compiled_simd())) return {name, false, "not compiled in"};
  if (!cpu_has(cpu_flag)) return {name, false, "this CPU lacks it"};
  return {name, false, "this CPU has only part of what Highway asks for"};
}

Feature fast_blas() {
  const std::string file = blas();
  if (file.empty()) return {"fast BLAS", false, "none is loaded"};
  if (!is_reference_blas(file)) return {"fast BLAS", true, file};
  return {"fast BLAS", false,
          "torch multiplies matrices with the reference BLAS, many times slower; "
          "install libopenblas0-pthread"};
}

Feature fitting_blas() {
  constexpr const char* kName = "BLAS for this CPU";
  const std::string core = blas_core(), warning = blas_warning(core, this_cpu());
  if (ops::blas_name().starts_with("MKL"))
    return {kName, true, "MKL chooses its kernels itself"};
  if (core.empty()) return {kName, false, "only OpenBLAS says what it runs"};
  if (!warning.empty()) return {kName, false, warning};
  const bool ours = environment("LAGWISE_BLAS_CORE") == core;
  return {kName, true,
          fmt::format(
              "kernels for {}{}", core,
              ours ? ", which lagwise chose; elsewhere set OPENBLAS_CORETYPE" : "")};
}

/// Two runtimes have threads of their own: what is set for one does not hold for the
/// other, and both take cores from each other.
Feature one_openmp() {
  constexpr const char* kName = "one OpenMP";
  const std::vector<std::string> all = openmp_runtimes();
  if (all.size() == 1) return {kName, true, all.front()};
  if (all.empty()) return {kName, false, "none is loaded: one thread computes"};
  return {kName, false,
          fmt::format("{} runtimes are loaded: {}", all.size(), fmt::join(all, ", "))};
}

Feature all_cores() {
  const int64_t threads = at::get_num_threads(), all = usable_cores();
  if (threads >= all) return {"all cores", true, fmt::format("{} threads", threads)};
  return {
      "all cores", false,
      fmt::format("torch runs {} of {}; set OMP_NUM_THREADS={}", threads, all, all)};
}

Feature python_operators() {
  constexpr const char* kName = "python operators";
  const std::string library = loaded_library("liblagwise");
  if (library.empty()) return {kName, false, "liblagwise.so is not loaded"};
  const bool of_debian = loaded_library("libtorch_cpu").starts_with("/usr/lib/");
  if (of_debian && !std::filesystem::exists("/usr/lib/python3/dist-packages/torch"))
    return {kName, false, "python3-torch is not installed"};
  // In a wheel: lagwise/lib/torch-2.13/liblagwise.so.
  if (library.find("/lagwise/lib/torch-") != std::string::npos)
    return {kName, true, "import lagwise"};
  return {kName, true, fmt::format("torch.ops.load_library(\"{}\")", library)};
}

Feature several_hosts() {
  constexpr const char* kName = "several hosts";
  if (!dist::has_gloo())
    return {kName, false,
            "this build has no Gloo: build it with Debian's libtorch-dev and "
            "libgloo-dev"};
  const dist::Reachable found = dist::reachable(dist::own_host());
  return {kName, found.yes, found.why};
}

// One row each; add yours.
std::vector<Feature> features() {
  return {
      simd_feature("AVX2", "AVX2", "avx2"),
      simd_feature("AVX-512", "AVX3", "avx512f"),
      all_cores(),
      one_openmp(),
      fast_blas(),
      fitting_blas(),
      python_operators(),
      several_hosts(),
  };
}

void print_json() {
  Json out;
  for (const Fact& fact : facts()) out[fact.section][fact.name] = fact.value;
  for (const Feature& feature : features())
    out["features"].push_back(
        {{"name", feature.name}, {"on", feature.on}, {"why", feature.why}});
  fmt::print("{}\n", out.dump(2));
}

std::string readable(const Fact& fact) {
  const Json& value = fact.value;
  if (std::string(fact.name).ends_with("_bytes"))
    return fmt::format("{:.1f} GB", value.get<double>() / 1e9);
  if (value.is_string()) return value;
  if (!value.is_array()) return value.dump();
  std::string words;
  for (const Json& word : value) words += word.get<std::string>() + " ";
  return words.empty() ? "none" : words.substr(0, words.size() - 1);
}

void print_text() {
  std::string section;
  for (const Fact& fact : facts()) {
    if (section != fact.section) fmt::print("{}\n", fact.section);
    section = fact.section;
    fmt::print("  {:<21} {}\n", fact.name, readable(fact));
  }
  fmt::print("features\n");
  for (const Feature& feature : features())
    fmt::print("  {:<21} {:<4}{}\n", feature.name, feature.on ? "on" : "off",
               feature.why);
}

void add_doctor(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "doctor",
      "Show what is installed, what this machine offers and what is switched off");
  const auto json = std::make_shared<bool>(false);
  verb->add_flag("--json", *json, "Print one JSON object instead of text");
  verb->callback([json] { *json ? print_json() : print_text(); });
}

const RegisterVerb doctor_registered({.name = "doctor",
                                      .place = 10,
                                      .add = add_doctor});

}  // namespace
}  // namespace lagwise::cli
