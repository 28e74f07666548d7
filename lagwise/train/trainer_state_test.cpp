#include "lagwise/train/trainer_state.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lagwise {
namespace {

TEST(ModelConfigText, KeepsTheGridAndWhatIsSeenOfIt) {
  ModelConfig config;
  config.grid = {3, 4}, config.geometry = "line";
  const ModelConfig read = parse_model_config("m", model_config_text(config));
  EXPECT_EQ(read.grid, config.grid);
  EXPECT_EQ(read.geometry, "line");
}

TEST(ModelConfigText, OfAnOlderRunSeesWhatItSawThen) {
  auto json = nlohmann::ordered_json::parse(model_config_text({}));
  EXPECT_EQ(json.erase("geometry"), 1u);
  EXPECT_EQ(parse_model_config("m", json.dump()).geometry, "auto");
}

}  // namespace
}  // namespace lagwise
