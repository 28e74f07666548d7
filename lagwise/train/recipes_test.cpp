// Every recipe in recipes/ is one, and its model can be built.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <set>

#include "lagwise/models/model.h"
#include "lagwise/models/testing_models.h"
#include "lagwise/train/recipe.h"

namespace lagwise {
namespace {

namespace fs = std::filesystem;

std::set<std::string> recipes() {
  const fs::path folder = fs::path(LAGWISE_SOURCE_DIR) / "recipes";
  std::set<std::string> found;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".toml")
      found.insert(fs::relative(entry.path(), folder).string());
  return found;
}

Recipe tiny(const std::string& name) {
  return read_recipe((fs::path(LAGWISE_SOURCE_DIR) / "recipes" / name).string(),
                     {"model.dim=32", "model.heads=2", "model.layers=1",
                      "model.feed_forward=16", "data.length=16", "train.batch=2"});
}

/// What the data would fill in.
void complete(const std::string& task, ModelConfig& config) {
  config.vocabulary = 16, config.classes = 4, config.length = 16;
  config.model = "classifier";
  if (task == "images") config.grid = {4, 4};
  for (const char* next : {"language", "music", "markov", "recall"})
    if (task == next) config.model = "decoder_lm";
  if (task == "masked") config.model = "encoder_lm";
  if (task == "retrieval") config.model = "dual_encoder";
  if (task == "pathfinder") config.grid = {4, 4};
  if (task == "moving") config.grid = {4, 2, 2};
  if (task == "harmonise" || task == "pairs") config.model = "encoder_decoder";
}

TEST(Recipes, AreAllThereThatTheReadmeNames) {
  for (const char* name : {"listops",
                           "text-imdb",
                           "images-cifar10",
                           "images-mnist",
                           "language-wikitext2",
                           "language-shakespeare",
                           "harmonise-jsb",
                           "pairs",
                           "lra/listops-full",
                           "lra/text-full",
                           "lra/image-full",
                           "lra/retrieval-full",
                           "lra/pathfinder-full",
                           "retrieval-wikitext2",
                           "pathfinder",
                           "moving",
                           "music-grooves",
                           "music-pop1k7",
                           "language-lrpe-paper",
                           "images-lrpe-paper",
                           "images-conv_spe-grid",
                           "music-transformer",
                           "masked-wikitext2",
                           "text-sst2",
                           "text-sst2-finetuned",
                           "memory/markov",
                           "memory/recall"})
    EXPECT_TRUE(recipes().contains(std::string(name) + ".toml")) << name;
}

TEST(Recipes, GiveModelsThatLearn) {
  for (const std::string& name : recipes()) {
    SCOPED_TRACE(name);
    Recipe recipe = tiny(name);
    EXPECT_FALSE(recipe.title.empty());
    const std::string task = Spec(recipe.data.task).name();
    complete(task, recipe.model);
    const auto model = make_model(recipe.model);
    Batch batch = testing::batch_of(testing::random_tokens(2, 16, 16));
    batch.targets = testing::random_tokens(2, 16, 4);
    const std::string& kind = recipe.model.model;
    if (kind == "classifier" || kind == "dual_encoder")
      batch.targets = batch.targets.select(1, 0);
    if (kind == "encoder_decoder" || kind == "dual_encoder")
      batch.source = testing::random_tokens(2, 16, 16, 3);
    const Loss loss = model->loss(batch, {.seed = 1});
    EXPECT_TRUE(std::isfinite(loss.sum.item<double>()));
    loss.sum.backward();
  }
}

/// What stands in a recipe's file, its sizes left alone.
ModelConfig model_of(const std::string& name) {
  return read_recipe((fs::path(LAGWISE_SOURCE_DIR) / "recipes" / name).string()).model;
}

TEST(Recipes, OfSpePapersUseTheFeaturesOfTheirAuthors) {
  std::set<std::string> papers = {"demo/sine_spe-paper.toml"};
  for (const std::string& name : recipes())
    if (name.starts_with("spe-paper/")) papers.insert(name);
  EXPECT_EQ(papers.size(), 7u);
  for (const std::string& name : papers) {
    SCOPED_TRACE(name);
    const ModelConfig model = model_of(name);
    Spec encoding(model.encoding);
    EXPECT_EQ(encoding.name(), "sine_spe");
    EXPECT_EQ(encoding.take("noise", "gaussian"), "gaussian");
    EXPECT_TRUE(encoding.take("gated", true));
    EXPECT_EQ(encoding.take("init", "paper"), "paper");
    EXPECT_EQ(encoding.take("decay", "none"), "none");
    const bool music = name.find("music") != std::string::npos || name[0] == 'd';
    EXPECT_THAT(model.attention,
                ::testing::StartsWith(music ? "linear:map=favor_two_sided:features=128"
                                            : "linear:map=favor:features=256"));
  }
}

/// Rotation with P = 1 and fixed angles is RoPE, and is to be called so; a recipe has LRPE
/// where its title says so, and nowhere else.
TEST(Recipes, CallLrpeOnlyWhatIsLrpe) {
  for (const std::string& name : recipes()) {
    SCOPED_TRACE(name);
    const ModelConfig model = model_of(name);
    const bool lrpe = Spec(model.encoding).name() == "lrpe";
    EXPECT_EQ(lrpe, tiny(name).title.find("LRPE") != std::string::npos);
    EXPECT_TRUE(lrpe || name.find("lrpe") == std::string::npos);
    if (!lrpe) continue;
    EXPECT_THAT(model.encoding, ::testing::HasSubstr("p=householder,angles=learned"));
    EXPECT_EQ(model.attention, "linear:map=elu1,denominator=none,norm=layer_concat");
  }
}

TEST(Recipes, NameATaskThereIs) {
  for (const std::string& name : recipes()) {
    const std::string task = Spec(tiny(name).data.task).name();
    std::vector<std::string> known;
    for (const TaskRow& row : tasks()) known.emplace_back(row.name);
    EXPECT_THAT(known, ::testing::Contains(task)) << name;
  }
}

}  // namespace
}  // namespace lagwise
