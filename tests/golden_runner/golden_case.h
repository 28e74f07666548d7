#pragma once

#include <ATen/core/Tensor.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lagwise::golden {

/// How far a number may be off; see compare.h.
struct Tolerance {
  double rtol = 0, atol = 0;
};

/// A stored array, as the manifest describes it.
struct GoldenTensor {
  std::string name;
  std::string role;  ///< input, param, noise, cotangent, output, grad, table, statistic
  std::string file;  ///< with its folder
  std::string dtype;  ///< float64, float32, int64
  std::vector<int64_t> shape;
};

/// One case: what to compute, from what, and what should come out. All that decides
/// how it is run comes from its manifest; `id` only names it in messages.
struct GoldenCase {
  std::string id;
  std::string method;     ///< what handler runs it
  nlohmann::json params;  ///< `params` of one format, `dims` of the other
  std::string formula;    ///< may be all that tells two forms of a method apart
  Tolerance output;       ///< of values in f64
  Tolerance gradient;     ///< of gradients in f64
  Tolerance single;       ///< of everything in f32
  std::string manifest;   ///< its file, for messages
  std::vector<GoldenTensor> tensors;

  bool has(std::string_view name) const;
  const GoldenTensor& operator[](std::string_view name) const;

  /// The array: f64 where it is stored as a real number, else int64. A file that
  /// is not what the manifest says is a DataError.
  at::Tensor load(std::string_view name) const;

  /// A parameter; DataError names the one that is missing or of another kind.
  template <class T>
  T param(const char* name) const {
    if (!params.contains(name)) refuse_param(name);
    try {
      return params.at(name).get<T>();
    } catch (const nlohmann::json::exception&) {
      refuse_param(name);
    }
  }
  template <class T>
  T param(const char* name, const T& fallback) const {
    return params.contains(name) ? param<T>(name) : fallback;
  }

 private:
  [[noreturn]] void refuse_param(const char* name) const;
};

/// Every case of every manifest.json in the folder and below it, in the order of
/// their paths. Both formats are known by what a manifest holds:
///
///     {"cases": [{id, method, params, rtol, atol, tensors: [..]}]}      a whole set
///     {"case": id, "dims": {..}, "arrays": {name: {..}}}                one case
///
/// A manifest of neither form, one that lacks a case it counts, and an index.json
/// that names a case that is not there, are DataErrors.
std::vector<GoldenCase> find_cases(const std::string& folder);

}  // namespace lagwise::golden
