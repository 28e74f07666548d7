#include "lagwise/attention/memory_options.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "lagwise/attention/linear.h"

namespace lagwise {
namespace {

MemoryOptions taken(const char* text) {
  Spec spec(text);
  const MemoryOptions options = take_memory_options(spec, true);
  spec.finish();
  return options;
}

std::string complaint(const char* text) {
  try {
    taken(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}

TEST(MemoryOptions, AreOffUnlessAskedFor) {
  const MemoryOptions none = taken("linear");
  EXPECT_FALSE(none.forgets || none.rewrites || none.gates_output);
  EXPECT_EQ(none.convolution, 0);
  EXPECT_FALSE(none.needs_order());
  EXPECT_FALSE(taken("linear:gate_output=true").needs_order());
  EXPECT_TRUE(taken("linear:conv=4").needs_order());
}

TEST(MemoryOptions, AreReadFromTheText) {
  const MemoryOptions all =
      taken("linear:forget=gated,clocks=4..99.5,write=delta,conv=3,gate_output=true");
  EXPECT_TRUE(all.forgets && all.rewrites && all.gates_output && all.needs_order());
  EXPECT_EQ(all.convolution, 3);
  EXPECT_EQ(all.shortest_clock, 4);
  EXPECT_EQ(all.longest_clock, 99.5);
}

TEST(MemoryOptions, SayWhatIsLegal) {
  EXPECT_EQ(complaint("linear:forget=yes"),
            "linear: option 'forget' is 'yes', expected one of none, gated");
  EXPECT_EQ(complaint("linear:conv=-1"),
            "linear: expected conv from 0 (none) to 64 tokens, got -1");
  for (const char* bad : {"8", "8..", "..8", "9..8", "0..8", "8..inf", "a..b", "8..9x"})
    EXPECT_EQ(
        complaint(("linear:clocks=" + std::string(bad)).c_str()),
        "linear: option 'clocks' is '" + std::string(bad) +
            "', expected two numbers of tokens from 1 up, the smaller first, such "
            "as 8..2048");
}

TEST(MemoryOptions, OfAnAttentionWithoutAStateHaveNoRuleToWriteBy) {
  Spec spec("exact:write=delta");
  take_memory_options(spec, false);
  EXPECT_THROW(spec.finish(), std::invalid_argument);
}

TEST(MemoryOptions, LeaveNothingToDivideByUnderTheDeltaRule) {
  EXPECT_TRUE(LinearAttention("linear", {}).divides());
  EXPECT_TRUE(LinearAttention("linear:forget=gated", {}).divides());
  EXPECT_FALSE(LinearAttention("linear:write=delta", {}).divides());
  EXPECT_FALSE(LinearAttention("linear:map=none,write=delta", {}).divides());
}

}  // namespace
}  // namespace lagwise
