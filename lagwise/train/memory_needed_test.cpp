#include "lagwise/train/memory_needed.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/models/model.h"

namespace lagwise {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

ModelConfig small() {
  ModelConfig config;
  config.dim = 32, config.layers = 2, config.heads = 2, config.length = 8;
  return config;
}

TEST(MemoryNeeded, IsABoundFromBelow) {
  Recipe recipe;
  recipe.train.batch = 1;
  for (const int64_t width : {0, 50}) {
    ModelConfig config = small();
    config.feed_forward = config.key_dim = width, config.value_dim = 2 * width;
    int64_t numbers = 0;
    for (const at::Tensor& one : make_model(config)->parameters())
      numbers += one.numel();
    const double bytes = least_bytes(recipe, config);
    EXPECT_LE(bytes, 16.0 * static_cast<double>(numbers) + 4 * 8 * 2 * 32);
    EXPECT_GT(bytes, 12.0 * static_cast<double>(numbers));
  }
}

TEST(MemoryNeeded, BeyondTheMachineIsRefusedByName) {
  Recipe recipe;
  const auto complaint = [&](const ModelConfig& config) -> std::string {
    try {
      check_memory(recipe, config);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(complaint(small()), "");
  ModelConfig wide = small(), fat = small();
  wide.dim = 10000000, fat.feed_forward = 100000000000;
  EXPECT_THAT(complaint(wide), AllOf(HasSubstr("model.dim = 10000000, "),
                                     HasSubstr(" GB of memory, the machine has ")));
  EXPECT_THAT(complaint(fat), HasSubstr("model.feed_forward = 100000000000"));
  recipe.train.batch = 1 << 23;
  ModelConfig far = small();
  far.length = 1 << 23;
  EXPECT_THAT(complaint(far), HasSubstr("train.batch = 8388608"));
}

}  // namespace
}  // namespace lagwise
