#include "lagwise/encodings/encoding.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

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
    EXPECT_NE(text.find("lrpe, none, rope"), std::string::npos) << text;
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
