#include "lagwise/encodings/encoding_text.h"

#include <gtest/gtest.h>

#include "lagwise/encodings/encoding.h"

namespace lagwise {
namespace {

TEST(EncodingText, StatesEveryOption) {
  EXPECT_EQ(full_encoding("none"), "none");
  EXPECT_EQ(full_encoding("alibi"), "alibi:exponent=8");
  EXPECT_EQ(full_encoding("huang:beyond=zero,max=9"),
            "huang:beyond=zero,form=any,max=9,tables=one");
  EXPECT_EQ(full_encoding("lrpe"),
            "lrpe:angles=learned,base=10000,decay=none,horizon=0,lambda=rotation,"
            "p=householder,reflections=1,spread=false,type=a,vectors=fixed");
  for (const EncodingRow& row : encodings()) {
    const std::string full = full_encoding(std::string(row.text()));
    EXPECT_EQ(full_encoding(full), full);
    for (const Spec::Option& option : encoding_options(row))
      EXPECT_NE(full.find(option.key + "="), std::string::npos) << full;
  }
}

TEST(EncodingText, ComesBackFromARunAsShortAsItCanBe) {
  for (const EncodingRow& row : encodings())
    EXPECT_EQ(stored_encoding(full_encoding(std::string(row.text()))), row.text());
  EXPECT_EQ(stored_encoding(full_encoding("lrpe:lambda=permutation")),
            "lrpe:lambda=permutation");
  EXPECT_EQ(stored_encoding(full_encoding("conv_spe:kernel=7x7,gated=true")),
            "conv_spe:kernel=7x7");
}

// Before runs stated every option, lrpe was a rotation by fixed angles without a P.
TEST(EncodingText, KeepsTheMeaningOfRunsFromBeforeADefaultChanged) {
  EXPECT_EQ(stored_encoding("lrpe"), "lrpe:angles=fixed,p=identity");
  EXPECT_EQ(stored_encoding("lrpe:decay=alibi"),
            "lrpe:angles=fixed,decay=alibi,p=identity");
  EXPECT_EQ(stored_encoding("lrpe:p=householder"), "lrpe:angles=fixed");
  EXPECT_EQ(stored_encoding("lrpe:angles=learned,p=householder"), "lrpe");
  EXPECT_EQ(stored_encoding("lrpe:lambda=permutation"),
            "lrpe:lambda=permutation,p=identity");
  EXPECT_EQ(stored_encoding("rope:layout=half"), "rope:layout=half");
}

TEST(EncodingText, LeavesWhatIsNoEncodingAlone) {
  for (const char* text : {"", "ropee", "lrpe:p=", "lrpe:no_such=1", "t5:buckets=7"}) {
    EXPECT_EQ(full_encoding(text), text);
    EXPECT_EQ(stored_encoding(text), text);
  }
}

TEST(EncodingText, RewritesTheEncodingOfEachLayer) {
  EXPECT_EQ(full_encoding("2*alibi | none"), "2*alibi:exponent=8; none");
  EXPECT_EQ(stored_encoding("2*alibi:exponent=8; none"), "2*alibi; none");
  EXPECT_EQ(full_encoding("alibi;;none"), "alibi;;none");
}

}  // namespace
}  // namespace lagwise
