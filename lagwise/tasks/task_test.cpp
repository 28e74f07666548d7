#include "lagwise/tasks/task.h"

#include "lagwise/tasks/testing_tasks.h"

namespace lagwise {
namespace {

using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using namespace lagwise::testing;

TEST(Tasks, AreListedByName) {
  std::vector<std::string> names;
  for (const TaskRow& row : tasks()) {
    names.emplace_back(row.name);
    EXPECT_FALSE(row.summary.empty());
    EXPECT_FALSE(row.metric.empty());
  }
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_THAT(names,
              IsSupersetOf({"harmonise", "images", "language", "listops", "masked",
                            "moving", "pairs", "pathfinder", "retrieval", "text"}));
}

TEST(Tasks, SuggestTheNameThatWasMeant) {
  EXPECT_THAT(refusal([] { make_task({.task = "listop"}); }),
              HasSubstr("unknown task 'listop'; did you mean 'listops'?"));
}

TEST(Tasks, RefuseUnknownOptionsBeforeTheyWork) {
  EXPECT_THAT(refusal([] { make_task({.task = "listops:trian=100000000"}); }),
              HasSubstr("unknown option 'trian'; did you mean 'train'?"));
  EXPECT_THAT(refusal([] { make_task({.task = "images:path=2", .path = "/nowhere"}); }),
              HasSubstr("unknown option 'path'"));
}

TEST(Tasks, TellTheirOptionsWithoutData) {
  const auto keys = [](const std::string& name) {
    std::string list;
    for (const TaskRow& row : tasks())
      if (row.name == name)
        for (const Spec::Option& option : task_options(row)) list += " " + option.key;
    return list;
  };
  EXPECT_EQ(keys("harmonise"), " transpose");
  EXPECT_EQ(keys("images"), " patch colour valid test size");
  EXPECT_EQ(keys("language"), " valid test");
  EXPECT_EQ(keys("listops"),
            " train valid test longer_than shorter_than max_depth max_args");
  EXPECT_EQ(keys("masked"), " rate mask random valid test");
  EXPECT_EQ(keys("moving"), " train valid test frames patch");
  EXPECT_EQ(keys("music"), " scheme styles songs corpus transpose bars");
  EXPECT_EQ(keys("pairs"), " valid test source target long made");
  EXPECT_EQ(keys("pathfinder"), " train valid test contour patch");
  EXPECT_EQ(keys("retrieval"), " train valid test");
  EXPECT_EQ(keys("text"), " valid test text label");
}

TEST(Tasks, NeedALength) {
  EXPECT_THAT(refusal([] { make_task({.task = "listops", .length = 0}); }),
              HasSubstr("data.length: expected at least 1, got 0"));
}

TEST(Tasks, NeedAPathUnlessTheyMakeTheirData) {
  for (const char* name :
       {"language", "masked", "text", "images", "harmonise", "retrieval"})
    EXPECT_EQ(refusal([&] { make_task({.task = name}); }),
              std::string(name) +
                  ": expected data.path, got none (--set data.path=PATH gives it)");
}

TEST(Tasks, RefuseWhatTheyCannotDo) {
  const auto task = make_task({.task = "listops:train=2,valid=1,test=1", .length = 40});
  EXPECT_THAT(refusal([&] { task->stream("train", 0, 1); }), HasSubstr("no stream"));
  EXPECT_THAT(refusal([&] { task->encode("x"); }), HasSubstr("takes no prompt"));
  EXPECT_THAT(refusal([&] {
                task->first_bars({1, 2}, 1);
              }),
              HasSubstr("a prompt in bars: expected a run of music or harmonise"));
  EXPECT_THAT(refusal([&] { task->decode({1}); }), HasSubstr("writes no text"));
  EXPECT_EQ(task->grammar(), nullptr);
  EXPECT_EQ(task->music(), nullptr);
}

}  // namespace
}  // namespace lagwise
