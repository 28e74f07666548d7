#include "lagwise/data/sources/dates.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

namespace lagwise::data {
namespace {

using ::testing::ContainsRegex;

struct Made {
  std::string split, source, target;
  bool operator==(const Made&) const = default;
};

std::vector<Made> make(const DateMaking& making) {
  std::vector<Made> all;
  make_date_pairs(making, [&](const Pair& pair) {
    all.push_back(
        {std::string(pair.split), std::string(pair.source), std::string(pair.target)});
  });
  return all;
}

TEST(Dates, AreWrittenInFiveWaysAndAsIsoHasThem) {
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::set<char> kinds;
  for (const Made& made : make({.pairs = 500})) {
    ASSERT_THAT(made.target,
                ContainsRegex("^(19|20)[0-9][0-9]-[0-9][0-9]-[0-9][0-9]$"));
    const std::string year = made.target.substr(0, 4);
    const int month = std::stoi(made.target.substr(5, 2));
    const std::string day = std::to_string(std::stoi(made.target.substr(8)));
    EXPECT_TRUE(made.source.ends_with(year)) << made.source;
    EXPECT_NE(made.source.find(day), std::string::npos) << made.source;
    const bool numbers = made.source.find('.') != std::string::npos;
    if (numbers)
      EXPECT_EQ(made.source, day + "." + std::to_string(month) + "." + year);
    else
      EXPECT_NE(made.source.find(kMonths[month - 1]), std::string::npos);
    const bool weekday = made.source.find("day, ") != std::string::npos;
    const bool month_first = made.source.starts_with(kMonths[month - 1]);
    const bool comma = made.source.find(',') != std::string::npos;
    kinds.insert(numbers        ? 'n'
                 : weekday      ? 'w'
                 : !month_first ? 'd'
                 : comma        ? 'm'
                                : 's');
  }
  EXPECT_EQ(kinds.size(), 5u);
}

/// By Zeller's congruence, from Saturday on.
std::string weekday_of(int year, int month, int day) {
  constexpr const char* kNames[] = {"Saturday",  "Sunday",   "Monday", "Tuesday",
                                    "Wednesday", "Thursday", "Friday"};
  if (month < 3) month += 12, --year;
  return kNames[(day + 13 * (month + 1) / 5 + year + year / 4 - year / 100 +
                 year / 400) %
                7];
}

TEST(Dates, KnowTheDaysOfTheWeek) {
  ASSERT_EQ(weekday_of(1969, 7, 20), "Sunday");
  int known = 0;
  for (const Made& made : make({.pairs = 2000})) {
    const size_t end = made.source.find("day, ");
    if (end == std::string::npos) continue;
    const auto number = [&](size_t at, size_t digits) {
      return std::stoi(made.target.substr(at, digits));
    };
    EXPECT_EQ(made.source.substr(0, end + 3),
              weekday_of(number(0, 4), number(5, 2), number(8, 2)))
        << made.source;
    ++known;
  }
  EXPECT_GT(known, 300);
}

TEST(Dates, OfOneSplitAreNotInAnother) {
  std::map<std::string, std::set<std::string>> days;
  std::map<std::string, double> pairs;
  for (const Made& made : make({.pairs = 20000, .valid = 0.1, .test = 0.2})) {
    days[made.split].insert(made.target);
    pairs[made.split] += 1;
  }
  EXPECT_NEAR(pairs["valid"], 2000, 200);
  EXPECT_NEAR(pairs["test"], 4000, 300);
  for (const char* split : {"valid", "test"})
    for (const std::string& day : days[split])
      EXPECT_FALSE(days["train"].contains(day)) << day;
}

TEST(Dates, AreFunctionsOfTheirSeed) {
  const auto made = make({.pairs = 100, .seed = 1}),
             more = make({.pairs = 200, .seed = 1});
  EXPECT_TRUE(std::equal(made.begin(), made.end(), more.begin()));
  EXPECT_NE(made, make({.pairs = 100, .seed = 2}));
}

}  // namespace
}  // namespace lagwise::data
