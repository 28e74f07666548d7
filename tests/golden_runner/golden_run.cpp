#include "tests/golden_runner/golden_run.h"

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

#include "tests/golden_runner/compare.h"

namespace lagwise::golden {
namespace {

Registry<HandlerRow>& registry() {
  static Registry<HandlerRow> registry("method");
  return registry;
}

// The reference's own results in f32 stand beside the f64 ones.
constexpr const char* kSingleSuffix = "_f32";

bool is_gradient(const GoldenTensor& tensor) {
  return tensor.role == "grad" || tensor.name.starts_with("d_") ||
         tensor.name.starts_with("de_");
}

bool is_result(const GoldenTensor& tensor) {
  return tensor.role == "output" || tensor.role == "grad" || tensor.role == "table" ||
         tensor.role == "statistic";
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

// What a handler threw ends its run, but not the others.
void run_once(const GoldenCase& golden, const HandlerRow& handler, at::ScalarType dtype,
              Findings& findings) {
  const std::string precision = dtype == at::kDouble ? "f64: " : "f32: ";
  Run run(golden, dtype, findings);
  try {
    handler.run(run);
  } catch (const Unavailable& missing) {
    findings.unavailable.push_back(missing.what());
  } catch (const c10::Error& error) {
    findings.mismatches.push_back(precision +
                                  first_line(error.what_without_backtrace()));
  } catch (const std::exception& error) {
    findings.mismatches.push_back(precision + first_line(error.what()));
  }
}

}  // namespace

RegisterHandler::RegisterHandler(HandlerRow row) { registry().add(row); }

const HandlerRow* find_handler(std::string_view method) {
  for (const HandlerRow& row : registry().rows())
    if (row.name == method) return &row;
  return nullptr;
}

at::Tensor Run::given(const std::string& name) const {
  const at::Tensor stored = golden.load(name);
  return stored.is_floating_point() ? stored.to(dtype) : stored;
}

at::Tensor Run::leaf(const std::string& name) {
  const auto found = leaves_.find(name);
  if (found != leaves_.end()) return found->second;
  return leaves_[name] = given(name).set_requires_grad(true);
}

void Run::fill(const std::string& name, const at::Tensor& mine) {
  const at::Tensor stored = given(name);
  at::NoGradGuard no_grad;
  at::Tensor target = mine;
  target.set_data(target.to(dtype));  // parameters are born in f32
  TORCH_CHECK(target.numel() == stored.numel(), "the parameter for ", name,
              " has shape ", target.sizes(), ", stored is ", stored.sizes());
  target.copy_(stored.reshape(target.sizes()));
  adopt(name, target);
}

void Run::adopt(const std::string& name, const at::Tensor& mine) {
  leaves_[name] = mine;
  if (!mine.requires_grad() && mine.is_leaf()) leaves_[name].set_requires_grad(true);
}

void Run::compare_with(const std::string& name, const at::Tensor& got,
                       Tolerance allowed) {
  findings_.compared.insert(name);
  ++findings_.comparisons;
  const std::string found = difference(got, golden.load(name), allowed);
  if (found.empty()) return;
  findings_.mismatches.push_back((dtype == at::kDouble ? "f64: " : "f32: ") + name +
                                 ": " + found);
}

void Run::compare(const std::string& name, const at::Tensor& got) {
  const bool gradient = is_gradient(golden[name]);
  const bool single = dtype == at::kFloat;
  compare_with(name, got,
               single     ? golden.single
               : gradient ? golden.gradient
                          : golden.output);
  // Ours and the reference's may each be off by as much.
  const std::string beside = name + kSingleSuffix;
  if (single && golden.has(beside) && !findings_.compared.contains(beside))
    compare_with(beside, got, {2 * golden.single.rtol, 2 * golden.single.atol});
}

void Run::compare_if_stored(const std::string& name, const at::Tensor& got) {
  if (golden.has(name)) compare(name, got);
}

void Run::compare_differs(const std::string& name, const at::Tensor& got) {
  findings_.compared.insert(name);
  expect(!difference(got, golden.load(name), {1e-7, 1e-7}).empty(),
         "ours must differ from the stored " + name);
}

void Run::expect(bool holds, const std::string& what) {
  ++findings_.comparisons;
  if (!holds) findings_.mismatches.push_back("expected: " + what);
}

void Run::excuse(const std::string& name, std::string_view) {
  findings_.compared.insert(name);
  findings_.compared.insert(name + kSingleSuffix);
}

void Run::compare_gradients(
    std::initializer_list<std::pair<std::string, at::Tensor>> outputs) {
  at::Tensor loss = at::zeros({}, dtype);
  for (const auto& [name, value] : outputs) {
    if (!golden.has("ct_" + name)) continue;
    const at::Tensor cotangent = given("ct_" + name);
    loss = loss + (value.reshape(cotangent.sizes()) * cotangent).sum();
  }
  if (loss.requires_grad()) compare_gradients(loss, "grad_");
}

void Run::compare_gradients(const at::Tensor& loss, const std::string& prefix,
                            const std::string& suffix) {
  std::vector<std::string> names;
  std::vector<at::Tensor> leaves;
  for (const auto& [name, leaf] : leaves_) {
    if (!golden.has(prefix + name + suffix)) continue;
    names.push_back(prefix + name + suffix);
    leaves.push_back(leaf);
  }
  if (leaves.empty()) return;
  const auto gradients =
      torch::autograd::grad({loss}, leaves, {}, /*retain_graph=*/true,
                            /*create_graph=*/false, /*allow_unused=*/true);
  for (size_t i = 0; i < names.size(); ++i) {
    const at::Tensor stored = golden.load(names[i]);
    const at::Tensor got =
        gradients[i].defined() ? gradients[i] : at::zeros(stored.sizes(), dtype);
    compare(names[i], got.reshape(stored.sizes()));
  }
}

Findings run_case(const GoldenCase& golden, const HandlerRow& handler) {
  Findings findings;
  run_once(golden, handler, at::kDouble, findings);
  run_once(golden, handler, at::kFloat, findings);
  if (!findings.mismatches.empty() || !findings.unavailable.empty()) return findings;
  for (const GoldenTensor& tensor : golden.tensors)
    if (is_result(tensor) && !findings.compared.contains(tensor.name))
      findings.mismatches.push_back(tensor.name + ": stored, but compared by nobody");
  if (findings.comparisons == 0) findings.mismatches.push_back("nothing to compare");
  return findings;
}

}  // namespace lagwise::golden
