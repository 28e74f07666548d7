// The operators give the numbers of SineSpeNoise.

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <vector>

#include "lagwise/encodings/sine_spe_noise.h"

namespace lagwise {
namespace {

constexpr SineSpeNoise::Shape kShape{
    .heads = 3, .dim = 5, .sines = 2, .width = 16, .gated = true, .shared = false};
const Draw kDraw{.seed = 4, .step = 7, .micro_step = 1};
constexpr int64_t kLayer = 2;

/// heads, dim, sines, width, gated, shared, layer, seed, step, micro_step, more
std::vector<c10::IValue> called(const char* name, bool gated, int64_t width,
                                const std::vector<c10::IValue>& more) {
  std::vector<c10::IValue> stack = {3, 5, 2, width, gated, false, kLayer, 4, 7, 1};
  stack.insert(stack.end(), more.begin(), more.end());
  c10::Dispatcher::singleton().findSchemaOrThrow(name, "").callBoxed(&stack);
  return stack;
}

TEST(SineSpeOperators, GiveTheNoiseOfTheEncoding) {
  SineSpeNoise noise(kShape);
  const auto type = static_cast<int64_t>(at::kDouble);
  const auto got = called("lagwise::sine_spe_noise", true, 16, {type});
  EXPECT_TRUE(got[0].toTensor().equal(noise.code(kDraw, kLayer, at::kDouble)));
  EXPECT_TRUE(got[1].toTensor().equal(noise.gate(kDraw, kLayer, at::kDouble)));
  EXPECT_EQ(called("lagwise::sine_spe_noise", false, 16, {type})[1].toTensor().numel(),
            0);
}

TEST(SineSpeOperators, GiveTheFoldOfTheEncoding) {
  const auto got = called("lagwise::sine_spe_fold", true, 16, {});
  EXPECT_TRUE(got[0].toTensor().equal(SineSpeNoise(kShape).fold(kDraw, kLayer)));
}

TEST(SineSpeOperators, SayWhatIsWrong) {
  try {
    called("lagwise::sine_spe_fold", true, 0, {});
    ADD_FAILURE() << "was not refused";
  } catch (const c10::Error& error) {
    EXPECT_STREQ(
        error.what_without_backtrace(),
        "sine_spe_fold: expected heads, dim and sines >= 0 and width >= 1, got "
        "3, 5, 2 and 0");
  }
}

}  // namespace
}  // namespace lagwise
