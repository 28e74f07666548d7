#include "lagwise/core/spec.h"

#include <gtest/gtest.h>

#include <functional>
#include <stdexcept>

namespace lagwise {
namespace {

// The message of the std::invalid_argument that `act` throws.
std::string complaint(const std::function<void()>& act) {
  try {
    act();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "(no complaint)";
}

std::string parse_complaint(const std::string& text) {
  return complaint([&] { Spec spec(text); });
}

TEST(Spec, ReadsANameAlone) {
  Spec spec("rope");
  EXPECT_EQ(spec.name(), "rope");
  EXPECT_EQ(spec.take("base", 10000.0), 10000.0);
  spec.finish();
}

TEST(Spec, RefusesLineBreaksWithoutQuotingThem) {
  try {
    Spec spec("alibi:whole=\n7");
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    const std::string said = error.what();
    EXPECT_EQ(said.find('\n'), std::string::npos);
    EXPECT_NE(said.find("byte 10 at 12"), std::string::npos) << said;
  }
}

TEST(Spec, ReadsEveryTypeOfValue) {
  Spec spec("sine_spe:sines=-5,width=2.5e-3,gated=true,norm=rms_head");
  EXPECT_EQ(spec.name(), "sine_spe");
  EXPECT_EQ(spec.take("sines", 1), -5);
  EXPECT_EQ(spec.take("width", 1.0), 2.5e-3);
  EXPECT_TRUE(spec.take("gated", false));
  EXPECT_EQ(spec.take("norm", "none"), "rms_head");
  spec.finish();
}

TEST(Spec, FallsBackWhereNothingIsGiven) {
  Spec spec("x:other=1");
  EXPECT_EQ(spec.take("text", "none"), "none");
  const std::string usual = "s";
  EXPECT_EQ(spec.take("string", usual), "s");
  EXPECT_EQ(spec.take("whole", int64_t{1} << 40), int64_t{1} << 40);
  EXPECT_EQ(spec.take("float", 0.5f), 0.5);
  EXPECT_TRUE(spec.take("flag", true));
  EXPECT_EQ(spec.take_choice("mode", "add", {"add", "clamp"}), "add");
}

TEST(Spec, ReadsWholeNumbersBeyond32Bits) {
  Spec spec("x:n=9223372036854775807");
  EXPECT_EQ(spec.take("n", 0), INT64_MAX);
}

TEST(Spec, AcceptsAWholeNumberWhereAnyNumberWillDo) {
  EXPECT_EQ(Spec("x:a=3").take("a", 1.0), 3.0);
}

TEST(Spec, LetsAValueContainColonsAndEqualSigns) {
  EXPECT_EQ(Spec("x:file=C:a=b").take("file", ""), "C:a=b");
}

TEST(Spec, RefusesTheWrongType) {
  EXPECT_EQ(complaint([] { Spec("x:n=many").take("n", 1); }),
            "x: option 'n' is 'many', expected a whole number");
  EXPECT_EQ(complaint([] { Spec("x:n=1.5").take("n", 1); }),
            "x: option 'n' is '1.5', expected a whole number");
  EXPECT_EQ(complaint([] { Spec("x:n=9223372036854775808").take("n", 1); }),
            "x: option 'n' is '9223372036854775808', expected a whole number");
  EXPECT_EQ(complaint([] { Spec("x:a=1.5z").take("a", 1.0); }),
            "x: option 'a' is '1.5z', expected a finite number");
  EXPECT_EQ(complaint([] { Spec("x:a=nan").take("a", 1.0); }),
            "x: option 'a' is 'nan', expected a finite number");
  EXPECT_EQ(complaint([] { Spec("x:on=yes").take("on", true); }),
            "x: option 'on' is 'yes', expected true or false");
}

TEST(Spec, RefusesAChoiceThatIsNotOffered) {
  EXPECT_EQ(complaint([] {
              Spec("x:mode=clmap").take_choice("mode", "add", {"add", "clamp"});
            }),
            "x: option 'mode' is 'clmap', expected one of add, clamp; did you mean "
            "'clamp'?");
}

TEST(Spec, ListsTheLegalKeysAndSuggestsTheNearest) {
  Spec spec("alibi:exponant=4");
  spec.take("exponent", 8.0);
  spec.take("heads", 8);
  EXPECT_EQ(
      complaint([&] { spec.finish(); }),
      "alibi: unknown option 'exponant'; did you mean 'exponent'? its options are "
      "exponent, heads");
}

TEST(Spec, ListsTheLegalKeysEvenWhenNoneIsNear) {
  Spec spec("alibi:colour=red");
  spec.take("exponent", 8.0);
  EXPECT_EQ(complaint([&] { spec.finish(); }),
            "alibi: unknown option 'colour'; its options are exponent");
}

TEST(Spec, SaysSoWhenThereAreNoOptions) {
  EXPECT_EQ(complaint([] { Spec("none:x=1").finish(); }),
            "none: unknown option 'x'; it takes no options");
}

TEST(Spec, RefusesMalformedText) {
  for (const char* text : {"", ":a=1", "two words", "a/b", "x y:a=1"})
    EXPECT_NE(parse_complaint(text).find("expected name:key=value,..."),
              std::string::npos)
        << text;
  EXPECT_EQ(parse_complaint("x:"), "x: expected key=value, got ''");
  EXPECT_EQ(parse_complaint("x:a"), "x: expected key=value, got 'a'");
  EXPECT_EQ(parse_complaint("x:a="), "x: expected key=value, got 'a='");
  EXPECT_EQ(parse_complaint("x:=1"), "x: expected key=value, got '=1'");
  EXPECT_EQ(parse_complaint("x:a=1,"), "x: expected key=value, got ''");
  EXPECT_EQ(parse_complaint("x:a=1, b=2"), "x: expected key=value, got ' b=2'");
}

TEST(Spec, RefusesAKeyGivenTwice) {
  EXPECT_EQ(parse_complaint("x:a=1,a=1"), "x: option 'a' is given twice");
}

TEST(Spec, TellsTheOptionsTakenWithTheirDefaults) {
  Spec spec("x:size=3");
  spec.take("size", 8);
  spec.take("rate", 0.001);
  spec.take("gated", true);
  spec.take_choice("noise", "sign", {"sign", "normal"});
  std::string all;
  for (const Spec::Option& option : spec.options())
    all += option.key + "=" + option.fallback + " (" + option.expected + ") ";
  EXPECT_EQ(all,
            "size=8 (a whole number) rate=0.001 (a finite number) "
            "gated=true (true or false) noise=sign (one of sign, normal) ");
}

TEST(Spec, PrintsItselfBackInCanonicalForm) {
  EXPECT_EQ(Spec("rope").text(), "rope");
  EXPECT_EQ(Spec("x:b=2,a=1.50").text(), "x:a=1.50,b=2");
  EXPECT_EQ(Spec(Spec("x:b=2,a=1").text()).text(), Spec("x:a=1,b=2").text());
}

TEST(Spec, WritesEveryOptionOrOnlyThoseThatDiffer) {
  const auto taken = [](Spec spec) {
    spec.take("base", 10000.0);
    spec.take_choice("p", "identity", {"identity", "dct"});
    spec.take("file", "");
    return spec;
  };
  EXPECT_EQ(taken(Spec("x")).full_text(), "x:base=10000,p=identity");
  EXPECT_EQ(taken(Spec("x:p=dct")).full_text(), "x:base=10000,p=dct");
  EXPECT_EQ(taken(Spec("x:p=dct,base=10000")).short_text(), "x:p=dct");
  EXPECT_EQ(taken(Spec("x:p=identity")).short_text(), "x");
  EXPECT_EQ(taken(Spec(taken(Spec("x")).full_text())).short_text(), "x");
}

TEST(Spec, AssumesWhatWasNotGiven) {
  Spec spec("x:p=dct");
  spec.assume(Spec("x:p=identity,q=2"));
  EXPECT_EQ(spec.take("p", "none"), "dct");
  EXPECT_EQ(spec.take("q", 1), 2);
  spec.finish();
}

}  // namespace
}  // namespace lagwise
