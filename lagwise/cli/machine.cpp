#include "lagwise/cli/machine.h"

#include <hwy/targets.h>
#include <link.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace lagwise::cli {
namespace {

// The text behind the first line of the form "name : text" in a file of /proc.
std::string field_of(const char* file, std::string_view name) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(name)) continue;
    const size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const size_t text = line.find_first_not_of(" \t", colon + 1);
    return text == std::string::npos ? "" : line.substr(text);
  }
  return "";
}

const std::vector<std::string>& all_cpu_features() {
  static const std::vector<std::string> features = [] {
    std::string line = field_of("/proc/cpuinfo", "flags");           // x86
    if (line.empty()) line = field_of("/proc/cpuinfo", "Features");  // ARM
    std::istringstream words(line);
    std::vector<std::string> list;
    for (std::string word; words >> word;) list.push_back(word);
    return list;
  }();
  return features;
}

int64_t kilobytes(std::string_view name) {
  return std::strtoll(field_of("/proc/meminfo", name).c_str(), nullptr, 10) * 1024;
}

std::vector<std::string> names_of(int64_t targets) {
  std::vector<std::string> names;  // a better target has a lower bit
  for (; targets != 0; targets &= targets - 1)
    names.emplace_back(hwy::TargetName(targets & -targets));
  return names;
}

}  // namespace

std::string cpu_model() { return field_of("/proc/cpuinfo", "model name"); }

std::string cpu_vendor() { return field_of("/proc/cpuinfo", "vendor_id"); }

bool cpu_has(std::string_view feature) {
  const auto& all = all_cpu_features();
  return std::find(all.begin(), all.end(), feature) != all.end();
}

std::vector<std::string> cpu_features() {
  std::vector<std::string> found;
  for (const char* feature :
       {"ssse3",       "sse4_1",      "sse4_2",   "avx",      "f16c",     "fma",
        "avx2",        "avx_vnni",    "avx512f",  "avx512dq", "avx512bw", "avx512vl",
        "avx512_vnni", "avx512_bf16", "amx_tile", "amx_bf16", "asimd",    "asimdhp",
        "sve",         "sve2",        "bf16"})
    if (cpu_has(feature)) found.emplace_back(feature);
  return found;
}

Memory memory() { return {kilobytes("MemTotal"), kilobytes("MemAvailable")}; }

std::vector<std::string> compiled_simd() { return names_of(HWY_TARGETS); }

std::vector<std::string> usable_simd() {
  return names_of(hwy::SupportedTargets() & HWY_TARGETS);
}

std::vector<std::string> loaded_libraries(std::string_view name) {
  struct Search {
    std::string_view name;
    std::vector<std::string> found;
  } search{name, {}};
  const auto visit = [](dl_phdr_info* info, size_t, void* data) {
    auto* search = static_cast<Search*>(data);
    const std::filesystem::path path = info->dlpi_name;
    if (!path.filename().string().starts_with(search->name)) return 0;
    std::error_code unknown;
    const std::filesystem::path real = std::filesystem::canonical(path, unknown);
    search->found.push_back((unknown ? path : real).string());
    return 0;  // go on
  };
  dl_iterate_phdr(visit, &search);
  return search.found;
}

std::string loaded_library(std::string_view name) {
  const std::vector<std::string> all = loaded_libraries(name);
  return all.empty() ? "" : all.front();
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "not set";
}

}  // namespace lagwise::cli
