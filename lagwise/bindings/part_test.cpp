// Parts compute with the tensors they are lent, and their gradients reach these.

#include "lagwise/bindings/part.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/stack.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/tensor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "lagwise/bindings/lend.h"

namespace lagwise::bindings {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;
using Names = std::vector<std::string>;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

constexpr const char* kAttention =
    R"({"part": "attention", "attention": "linear:map=elu1", "heads": 2, "dim": 4,
        "encoding": "sine_spe:realizations=6"})";

Tensors drawn(const std::string& text) {
  Tensors parameters;
  for (const auto& [name, tensor] : make_part(text)->parameters())
    parameters.push_back(tensor.detach().clone().set_requires_grad(true));
  return parameters;
}

Tensors rows() {
  Tensors all;
  for (int i = 0; i < 3; ++i)
    all.push_back(at::randn({1, 2, 5, 4}).set_requires_grad(true));
  return all;
}

/// Of `part` or `part_node`.
Tensor attend(const char* op, const Tensors& parameters, const Tensors& inputs) {
  torch::jit::Stack stack = {std::string(kAttention), parameters, inputs,
                             Names{"q", "k", "v"}};
  c10::Dispatcher::singleton()
      .findSchemaOrThrow(("lagwise_bindings::" + std::string(op)).c_str(), "")
      .callBoxed(&stack);
  return stack[0].toTensorVector()[0];
}

Tensors gradients(const Tensor& of, Tensors parameters, const Tensors& inputs) {
  parameters.insert(parameters.end(), inputs.begin(), inputs.end());
  return torch::autograd::grad({of.square().sum()}, parameters);
}

TEST(Lend, GivesMemoryVersionAndPlaceInTheGraph) {
  const Tensor lent = at::tensor({1.0f, 2.0f}).set_requires_grad(true);
  const Tensor twice = lent * 2;  // no leaf
  Tensor own = at::tensor({7.0f, 7.0f}).set_requires_grad(true);
  lend({{"x", own}}, {twice});
  EXPECT_EQ(own.data_ptr(), twice.data_ptr());
  const Tensor y = own.square().sum();
  EXPECT_FLOAT_EQ(torch::autograd::grad({y}, {lent}, {}, true)[0][1].item<float>(), 16);
  twice.detach().add_(1);
  EXPECT_THROW(torch::autograd::grad({y}, {lent}), c10::Error);
}

TEST(Lend, RefusesOtherShapesAndNumbers) {
  const Tensor own = at::randn({2, 3});
  EXPECT_THAT(
      [&] {
        lend({{"gate", own}}, {at::randn({3, 2})});
      },
      ThrowsMessage<std::invalid_argument>(
          HasSubstr("parameter gate: expected [2, 3], got [3, 2]")));
  EXPECT_THAT(
      [&] {
        lend({{"gate", own}}, {});
      },
      ThrowsMessage<std::invalid_argument>(HasSubstr("expected 1 parameters, got 0")));
}

TEST(Part, TwoCallsWaitForTheirBackwardPassesSideBySide) {
  const Tensors inputs = rows();
  const Tensors a = drawn(kAttention), b = drawn(kAttention);
  for (const Tensor& one : b) one.detach().add_(0.5);
  const Tensor first = attend("part", a, inputs);
  const Tensor second = attend("part", b, inputs);
  const Tensors of_first = gradients(first, a, inputs);
  const Tensors of_second = gradients(second, b, inputs);
  const Tensors alone = gradients(attend("part", b, inputs), b, inputs);
  for (size_t i = 0; i < alone.size(); ++i)
    EXPECT_TRUE(at::allclose(of_second[i], alone[i])) << i;
  EXPECT_FALSE(at::allclose(of_first[0], alone[0]));
}

TEST(Part, OneNodeEqualsTheGraphOfManyWithItsGradients) {
  const Tensors inputs = rows(), parameters = drawn(kAttention);
  const Tensor many = attend("part", parameters, inputs);
  const Tensor one = attend("part_node", parameters, inputs);
  EXPECT_TRUE(at::equal(one, many));
  const Tensors expected = gradients(many, parameters, inputs);
  const Tensors got = gradients(one, parameters, inputs);
  ASSERT_EQ(got.size(), expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    EXPECT_TRUE(at::allclose(got[i], expected[i])) << i;
}

TEST(Part, SaysWhatIsWrongInOneLine) {
  EXPECT_THAT(
      [] { make_part(R"({"part": "atention"})"); },
      ThrowsMessage<std::invalid_argument>(HasSubstr("unknown part 'atention'")));
  EXPECT_THAT([] { make_part("rope"); },
              ThrowsMessage<std::invalid_argument>(HasSubstr("as a JSON object")));
  EXPECT_THAT(
      [] { make_part(R"({"part": "encoding", "heads": "two"})"); },
      ThrowsMessage<std::invalid_argument>(HasSubstr("heads: expected another")));
  EXPECT_THAT(
      [] { make_part(R"({"part": "encoding", "dim": 0})"); },
      ThrowsMessage<std::invalid_argument>(HasSubstr("dim: expected at least 1")));
}

}  // namespace
}  // namespace lagwise::bindings
