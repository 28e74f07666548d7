#include "tests/golden_runner/golden_case.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/max.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <numbers>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/npy.h"

namespace lagwise::golden {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// In f32, of a set that states f64 tolerances only.
constexpr Tolerance kSingle{2e-5, 2e-6};
// What an independent derivation of the SPE arrays meets, golden/spe/README.md.
constexpr Tolerance kSpeOutput{1e-12, 1e-13}, kSpeGradient{1e-9, 1e-11};

json read_json(const fs::path& file) {
  std::ifstream stream(file);
  if (!stream) throw DataError(file.string(), -1, "a readable file");
  try {
    return json::parse(stream);
  } catch (const json::parse_error& error) {
    throw DataError(file.string(), static_cast<int64_t>(error.byte), "JSON");
  }
}

GoldenTensor read_tensor(const json& entry, std::string name, const fs::path& folder) {
  return {std::move(name), entry.at("role").get<std::string>(),
          (folder / entry.at("file").get<std::string>()).string(),
          entry.at("dtype").get<std::string>(),
          entry.at("shape").get<std::vector<int64_t>>()};
}

GoldenCase read_row(const json& row, const fs::path& manifest) {
  GoldenCase one;
  one.id = row.at("id").get<std::string>();
  one.method = row.at("method").get<std::string>();
  one.params = row.at("params");
  one.formula = row.value("formula", "");
  one.output = {row.at("rtol").get<double>(), row.at("atol").get<double>()};
  one.gradient = one.output;
  one.single = kSingle;
  // A case whose own tolerance is wider needs it in f32 too; one that wants
  // equality wants it in every precision.
  const bool equal = one.output.rtol == 0 && one.output.atol == 0;
  one.single.rtol = equal ? 0 : std::max(one.single.rtol, one.output.rtol);
  one.single.atol = equal ? 0 : std::max(one.single.atol, one.output.atol);
  one.manifest = manifest.string();
  for (const json& entry : row.at("tensors"))
    one.tensors.push_back(read_tensor(entry, entry.at("name").get<std::string>(),
                                      manifest.parent_path()));
  return one;
}

// These manifests name no method; the parameters a case holds do.
std::string method_of(const GoldenCase& one, const json& manifest) {
  if (one.has("freqs")) return "SineSPE";
  if (one.has("conv_q_weight")) return "ConvSPE";
  if (one.has("omega")) return "FAVOR after SPE";
  if (manifest.contains("nucleus")) return "metrics";
  return manifest.value("description", one.id);
}

// A phase 2 pi f p with f < 1/2 is rounded to pi |p| eps, in the reference as well.
double phase_rounding(const GoldenCase& one) {
  if (!one.has("positions")) return 0;
  const double farthest = one.load("positions").abs().max().item<double>();
  return std::numbers::pi * farthest * std::numeric_limits<double>::epsilon();
}

GoldenCase read_single(const json& manifest, const fs::path& file) {
  GoldenCase one;
  one.id = manifest.at("case").get<std::string>();
  one.params = manifest.at("dims");
  for (const char* const key : {"results", "nucleus", "style"})  // numbers, not arrays
    if (manifest.contains(key)) one.params[key] = manifest.at(key);
  one.output = kSpeOutput;
  one.gradient = kSpeGradient;
  one.single = kSingle;
  one.manifest = file.string();
  for (const auto& [name, entry] : manifest.at("arrays").items())
    one.tensors.push_back(read_tensor(entry, name, file.parent_path()));
  one.method = method_of(one, manifest);
  one.output.atol += phase_rounding(one);
  return one;
}

void read_manifest(const fs::path& file, std::vector<GoldenCase>& cases) {
  const json manifest = read_json(file);
  try {
    if (manifest.contains("cases")) {
      const json& rows = manifest.at("cases");
      if (manifest.value("n_cases", rows.size()) != rows.size())
        throw DataError(file.string(), -1, "as many cases as n_cases says");
      for (const json& row : rows) cases.push_back(read_row(row, file));
    } else if (manifest.contains("arrays")) {
      cases.push_back(read_single(manifest, file));
    } else {
      throw DataError(file.string(), -1, "'cases' or 'arrays'");
    }
  } catch (const json::exception& error) {
    throw DataError(file.string(), -1, std::string("a manifest: ") + error.what());
  }
}

// {"conv1d": {..}, ..}: the cases that should stand beside it.
void check_index(const fs::path& file) {
  const json index = read_json(file);
  for (const auto& [name, dims] : index.items())
    if (!fs::exists(file.parent_path() / name / "manifest.json"))
      throw DataError(file.string(), -1, "a manifest of the case '" + name + "'");
}

at::ScalarType scalar_type(data::NpyType type) {
  switch (type) {
    case data::NpyType::float64:
      return at::kDouble;
    case data::NpyType::float32:
      return at::kFloat;
    case data::NpyType::int64:
      return at::kLong;
    case data::NpyType::int32:
      return at::kInt;
    case data::NpyType::boolean:
      return at::kBool;
  }
  return at::kDouble;
}

}  // namespace

bool GoldenCase::has(std::string_view name) const {
  return std::any_of(tensors.begin(), tensors.end(),
                     [&](const GoldenTensor& one) { return one.name == name; });
}

const GoldenTensor& GoldenCase::operator[](std::string_view name) const {
  for (const GoldenTensor& one : tensors)
    if (one.name == name) return one;
  throw DataError(manifest, -1, id + " to have the tensor '" + std::string(name) + "'");
}

at::Tensor GoldenCase::load(std::string_view name) const {
  const GoldenTensor& about = (*this)[name];
  const data::NpyArray array = data::read_npy(about.file);
  if (array.shape != about.shape || data::name_of(array.type) != about.dtype)
    throw DataError(about.file, -1, "the shape and type its manifest states");
  const at::Tensor tensor = at::empty(array.shape, at::dtype(scalar_type(array.type)));
  if (!array.bytes.empty())
    std::memcpy(tensor.data_ptr(), array.bytes.data(), array.bytes.size());
  return tensor.to(tensor.is_floating_point() ? at::kDouble : at::kLong);
}

void GoldenCase::refuse_param(const char* name) const {
  throw DataError(manifest, -1, id + " to have a usable parameter '" + name + "'");
}

std::vector<GoldenCase> find_cases(const std::string& folder) {
  if (!fs::is_directory(folder)) throw DataError(folder, -1, "a folder of cases");
  std::vector<fs::path> manifests;
  const auto follow = fs::directory_options::follow_directory_symlink;
  for (const auto& entry : fs::recursive_directory_iterator(folder, follow)) {
    if (entry.path().filename() == "manifest.json") manifests.push_back(entry.path());
    if (entry.path().filename() == "index.json") check_index(entry.path());
  }
  std::sort(manifests.begin(), manifests.end());
  std::vector<GoldenCase> cases;
  for (const fs::path& file : manifests) read_manifest(file, cases);
  return cases;
}

}  // namespace lagwise::golden
