#include "lagwise/encodings/encoding.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>
#include <stdexcept>

#include "lagwise/encodings/testing_subject.h"

namespace lagwise {
namespace {

TEST(Encodings, AreSortedByName) {
  const auto& rows = encodings();
  EXPECT_TRUE(std::is_sorted(
      rows.begin(), rows.end(),
      [](const EncodingRow& a, const EncodingRow& b) { return a.name < b.name; }));
}

TEST(Encodings, ListTheLegalNamesWhenOneIsUnknown) {
  try {
    make_encoding("sinusoidl", {});
    FAIL() << "accepted an unknown name";
  } catch (const std::invalid_argument& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("did you mean 'sinusoidal'"), std::string::npos) << text;
    EXPECT_NE(text.find("expected one of alibi, "), std::string::npos) << text;
  }
}

TEST(Encodings, TellTheirOptionsWithDefaults) {
  for (const EncodingRow& row : encodings()) {
    if (row.name != "learned") continue;
    const auto options = encoding_options(row);
    ASSERT_EQ(options.size(), 1u);
    EXPECT_EQ(options[0].key, "max");
    EXPECT_EQ(options[0].fallback, "512");
    EXPECT_EQ(options[0].expected, "a whole number");
  }
}

// What the table of encodings says of axes.
TEST(Registry, NamesWhatTakesMostAxes) {
  for (const EncodingRow& row : encodings()) {
    if (row.widest.empty()) continue;
    testing::Subject subject(std::string(row.widest), {.heads = 2, .dim = 24});
    const int64_t dims = subject.traits().dims;
    EXPECT_GT(dims, testing::Subject(std::string(row.text())).traits().dims)
        << row.name;
    Placement at = subject.at(0, false);
    at.grid.assign(static_cast<size_t>(dims), 2);
    const at::Tensor x = subject.input(1, int64_t{1} << dims);
    EXPECT_TRUE(subject.scores(x, x, at).isfinite().all().item<bool>()) << row.name;
  }
}

TEST(Registry, HoldsExactlyTheFilesOfTheFolder) {
  // An encoding is a source without a header; *_operators.cpp shows parts of one to torch.
  std::set<std::string> files, rows;
  const std::filesystem::path folder =
      std::filesystem::path(LAGWISE_SOURCE_DIR) / "lagwise" / "encodings";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const auto& path = entry.path();
    const std::string stem = path.stem();
    if (path.extension() == ".cpp" && !stem.ends_with("_test") &&
        !stem.ends_with("_bench") && !stem.ends_with("_operators") &&
        !std::filesystem::exists(folder / (stem + ".h")))
      files.insert(stem);
  }
  for (const EncodingRow& row : encodings()) {
    rows.emplace(row.name);
    EXPECT_FALSE(row.summary.empty()) << row.name;
  }
  EXPECT_EQ(rows, files);
}

TEST(HeadShape, FillsInWhatIsNotGiven) {
  const HeadShape shape{.heads = 3, .dim = 4};
  EXPECT_EQ(shape.model_width(), 12);
  EXPECT_EQ(shape.value_width(), 4);
}

TEST(Positions, AreTheGivenOnesOrCountFromTheStart) {
  EXPECT_TRUE(at::equal(positions({}, 7, 3), at::tensor({7., 8., 9.}).to(at::kDouble)));
  EXPECT_TRUE(at::equal(positions(at::tensor({4, 2}), 7, 2),
                        at::tensor({4., 2.}).to(at::kDouble)));
}

}  // namespace
}  // namespace lagwise
