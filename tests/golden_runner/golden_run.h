#pragma once

#include <ATen/core/Tensor.h>

#include <initializer_list>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lagwise/core/registry.h"
#include "tests/golden_runner/golden_case.h"

namespace lagwise::golden {

/// A piece the library does not have yet. Only this may be excused by `not_yet`.
class Unavailable : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// What came of a case, over all its runs.
struct Findings {
  std::vector<std::string> mismatches;   ///< one line each
  std::vector<std::string> unavailable;  ///< pieces that are missing
  std::set<std::string> compared;        ///< stored tensors that were looked at
  int64_t comparisons = 0;
};

/// One case in one precision, as a handler sees it.
class Run {
 public:
  Run(const GoldenCase& golden, at::ScalarType dtype, Findings& findings)
      : golden(golden), dtype(dtype), findings_(findings) {}

  const GoldenCase& golden;
  const at::ScalarType dtype;

  /// The stored tensor in this precision (or int64). The first call makes it a
  /// leaf of the graph, by its name; gradients are later compared by that name.
  at::Tensor leaf(const std::string& name);
  /// The same without a gradient.
  at::Tensor given(const std::string& name) const;
  /// Copies a stored tensor into `mine`, a parameter of the library, which then is
  /// the leaf of that name.
  void fill(const std::string& name, const at::Tensor& mine);
  /// Lets `mine` be the leaf of that name, as it is.
  void adopt(const std::string& name, const at::Tensor& mine);
  /// Forgets every leaf, before the same tensors take part in another graph.
  void forget_leaves() { leaves_.clear(); }

  void compare(const std::string& name, const at::Tensor& got);
  /// Compares every output there is: handlers may offer more than a case stores.
  void compare_if_stored(const std::string& name, const at::Tensor& got);
  /// Expects that `got` is NOT the stored tensor, which holds a known fault.
  void compare_differs(const std::string& name, const at::Tensor& got);
  /// Any other demand; `what` says what must hold.
  void expect(bool holds, const std::string& what);
  /// A stored tensor that is not compared, and why.
  void excuse(const std::string& name, std::string_view why);

  /// With loss = sum of ct_X * X over the outputs given, compares d loss / d Y with
  /// the stored grad_Y for each leaf Y.
  void compare_gradients(
      std::initializer_list<std::pair<std::string, at::Tensor>> outputs);
  /// The same for any loss: the gradient of leaf Y is stored as prefix + Y + suffix.
  void compare_gradients(const at::Tensor& loss, const std::string& prefix,
                         const std::string& suffix = "");

 private:
  void compare_with(const std::string& name, const at::Tensor& got, Tolerance allowed);

  std::map<std::string, at::Tensor> leaves_;
  Findings& findings_;
};

/// How cases of one method are run.
struct HandlerRow {
  std::string_view name;    ///< of the method, as manifests have it
  std::string_view family;  ///< under which it is counted
  void (*run)(Run& run);
};

/// Adds a row. Define them at namespace scope.
struct RegisterHandler {
  explicit RegisterHandler(HandlerRow row);
};

/// The handler of a method, or null.
const HandlerRow* find_handler(std::string_view method);

/// Runs a case in f64 and in f32, and looks for stored results that no handler
/// compared.
Findings run_case(const GoldenCase& golden, const HandlerRow& handler);

}  // namespace lagwise::golden
