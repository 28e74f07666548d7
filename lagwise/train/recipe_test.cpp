#include "lagwise/train/recipe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lagwise/data/testing_files.h"
#include "lagwise/train/recipe_fields.h"
#include "lagwise/train/run_folder.h"

namespace lagwise {
namespace {

using lagwise::testing::data_error;

std::string refusal(const std::string& text, const std::vector<std::string>& set = {}) {
  try {
    parse_recipe("r.toml", text, set);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "(no error)";
}

TEST(Recipe, ReadsTablesAndThenWhatIsSet) {
  const Recipe recipe = parse_recipe(
      "r.toml",
      "title = \"a try\"\n"
      "[model]\n"
      "encoding = \"rope:layout=half\"\n"
      "tied = false\n"
      "[train]\n"
      "lr = 1\n"
      "steps = 50\n",
      {"train.steps=60", "model.norm=layer", "train.eps=1e-8", "data.path=a=b c"});
  EXPECT_EQ(recipe.title, "a try");
  EXPECT_EQ(recipe.model.encoding, "rope:layout=half");
  EXPECT_EQ(recipe.model.norm, "layer");
  EXPECT_FALSE(recipe.model.tied);
  EXPECT_EQ(recipe.train.lr, 1.0);
  EXPECT_EQ(recipe.train.steps, 60);
  EXPECT_EQ(recipe.train.eps, 1e-8);
  EXPECT_EQ(recipe.data.path, "a=b c");
  EXPECT_EQ(recipe.train.batch, TrainConfig().batch);
}

TEST(Recipe, GivesBackEveryKeyItWrites) {
  Recipe recipe;
  // A value of its own for each key, so that two places mixed up would show.
  double number = 0.01;
  int64_t whole = 2;
  for (const RecipeField& field : recipe_fields()) {
    RecipeField::Value value = field.get(recipe);
    if (auto* x = std::get_if<double>(&value))
      *x = number += 1e-3;
    else if (auto* n = std::get_if<int64_t>(&value))
      *n = ++whole;
    else if (auto* flag = std::get_if<bool>(&value))
      *flag = !*flag;
    else if (field.words.empty())
      value = "a \"word\" \\ of " + std::string(field.key);
    else
      value = field.words.back();
    ASSERT_TRUE(field.set(recipe, value)) << field.key;
  }
  const std::string text = recipe_text(recipe);
  EXPECT_EQ(recipe_text(parse_recipe("r.toml", text)), text);
  const Recipe again = parse_recipe("r.toml", text);
  for (const RecipeField& field : recipe_fields())
    EXPECT_EQ(field.get(again), field.get(recipe)) << field.key;
  EXPECT_EQ(forbidden_changes(recipe, again), std::vector<std::string>());
}

TEST(Recipe, IsKeptWithEveryOptionOfItsEncodings) {
  Recipe recipe;
  recipe.model.encoding = "rope:layout=half", recipe.model.cross_encoding = "alibi";
  const std::string text = recipe_text(recipe);
  EXPECT_THAT(text, ::testing::HasSubstr("cross_encoding = \"alibi:exponent=8\""));
  EXPECT_THAT(text, ::testing::HasSubstr("encoding = \"rope:base=10000,"));
  const Recipe again = parse_kept_recipe("r.toml", text);
  EXPECT_EQ(again.model.encoding, "rope:layout=half");
  EXPECT_EQ(again.model.cross_encoding, "alibi");
  EXPECT_EQ(forbidden_changes(parse_recipe("r.toml", text), recipe),
            std::vector<std::string>());
}

TEST(Recipe, IsKeptWithThePresetsOfItsAttentionInFull) {
  const Recipe recipe =
      parse_recipe("r.toml",
                   "[model]\nlayers = 3\nattention = \"2*deltanet; exact:window=8\"\n"
                   "encoding = \"none; none; alibi\"\nkey_dim = 24\nvalue_dim = 8\n");
  const Recipe again = parse_kept_recipe("r.toml", recipe_text(recipe));
  EXPECT_EQ(again.model.attention,
            "2*linear:conv=4,map=none,norm=rms_head,write=delta; exact:window=8");
  EXPECT_EQ(again.model.encoding, "none; none; alibi");
  EXPECT_EQ(again.model.key_dim, 24);
  EXPECT_EQ(again.model.value_dim, 8);
}

// lrpe meant a rotation by fixed angles without a P when runs kept the bare word.
TEST(Recipe, OfAnOlderRunMeansWhatItMeant) {
  const char* text = "[model]\nencoding = \"lrpe\"\n";
  const Recipe then = parse_kept_recipe("r.toml", text);
  EXPECT_EQ(then.model.encoding, "lrpe:angles=fixed,p=identity");
  EXPECT_EQ(parse_recipe("r.toml", text).model.encoding, "lrpe");
  EXPECT_THAT(forbidden_changes(then, parse_recipe("r.toml", text)),
              ::testing::ElementsAre("model.encoding = \"lrpe\", was "
                                     "\"lrpe:angles=fixed,p=identity\""));
}

TEST(Recipe, SuggestsTheKeyThatWasMeant) {
  EXPECT_EQ(refusal("[train]\n\nstep = 3"),
            "r.toml, line 3: unknown key 'train.step'; did you mean 'train.steps'? "
            "lagwise train --keys lists them");
  EXPECT_EQ(refusal("", {"train.warm_up=3"}),
            "--set train.warm_up=3: unknown key 'train.warm_up'; did you mean "
            "'train.warmup'? lagwise train --keys lists them");
  EXPECT_EQ(refusal("[model]\nlr = 0.1"),
            "r.toml, line 2: unknown key 'model.lr'; did you mean 'train.lr'? lagwise "
            "train --keys lists them");
  EXPECT_EQ(refusal("[zebra]\nzoo = 0.1"),
            "r.toml, line 2: unknown key 'zebra.zoo'; lagwise train --keys lists them");
  EXPECT_EQ(refusal("[model]\nvocabulary = 3"),
            "r.toml, line 2: 'model.vocabulary' cannot be set: the data of data.task "
            "decides it");
  EXPECT_EQ(refusal("[model]\nseed = 3"),
            "r.toml, line 2: 'model.seed' cannot be set: it is train.seed");
}

TEST(Recipe, SaysWhichValuesAreLegal) {
  EXPECT_EQ(refusal("[train]\nsteps = \"ten\""),
            "r.toml, line 2: train.steps: expected a whole number, at least 1, got "
            "\"ten\"");
  EXPECT_EQ(refusal("[train]\nsteps = 0"),
            "r.toml, line 2: train.steps: expected a whole number, at least 1, got 0");
  EXPECT_EQ(
      refusal("[model]\ndropout = 1.0"),
      "r.toml, line 2: model.dropout: expected a number, at least 0, below 1, got "
      "1.0");
  EXPECT_EQ(refusal("[train]\nlr = nan"),
            "r.toml, line 2: train.lr: expected a number, at least 0, got nan");
  EXPECT_EQ(refusal("[model]\ntied = 1"),
            "r.toml, line 2: model.tied: expected true or false, got 1");
  EXPECT_EQ(refusal("", {"train.schedule=linear"}),
            "--set train.schedule=linear: train.schedule: expected one of cosine, "
            "inverse_root, constant, got 'linear'");
  EXPECT_EQ(refusal("", {"train.steps=1e3"}),
            "--set train.steps=1e3: train.steps: expected a whole number, at least 1, "
            "got '1e3'");
  EXPECT_EQ(refusal("", {"train.steps"}), "--set train.steps: expected key=value");
}

TEST(Recipe, IsADataErrorWhereItIsNoToml) {
  EXPECT_THAT(data_error([] { parse_recipe("r.toml", "[train\nsteps = 3"); }),
              ::testing::StartsWith("r.toml, line 1: expected TOML: "));
  EXPECT_THAT(data_error([] { read_recipe("/no/such/file.toml"); }),
              ::testing::HasSubstr("/no/such/file.toml"));
}

}  // namespace
}  // namespace lagwise
