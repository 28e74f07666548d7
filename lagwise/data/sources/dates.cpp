#include "lagwise/data/sources/dates.h"

#include <chrono>
#include <string>
#include <vector>

#include "lagwise/data/sets/split_dealer.h"
#include "lagwise/data/sources/dice.h"

namespace lagwise::data {
namespace {

constexpr int64_t kDateStream = 0x4454;  // of the noise: this maker's own

constexpr const char* kMonths[] = {"January",   "February", "March",    "April",
                                   "May",       "June",     "July",     "August",
                                   "September", "October",  "November", "December"};
constexpr const char* kWeekdays[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                     "Thursday", "Friday", "Saturday"};

/// How a date can be written; d is the day, m the month, y the year.
enum class Form { weekday_d_m_y, d_m_y, m_d_y, m_short_d_y, numbers };
constexpr Form kDateForms[] = {Form::weekday_d_m_y, Form::d_m_y, Form::m_d_y,
                               Form::m_short_d_y, Form::numbers};

class Date {
 public:
  explicit Date(std::chrono::sys_days day)
      : weekday_(std::chrono::weekday(day).c_encoding()) {
    const std::chrono::year_month_day date(day);
    year_ = std::to_string(static_cast<int>(date.year()));
    month_ = static_cast<unsigned>(date.month());
    day_ = static_cast<unsigned>(date.day());
  }

  std::string written(Form form) const {
    const std::string month = kMonths[month_ - 1], day = std::to_string(day_);
    switch (form) {
      case Form::weekday_d_m_y:
        return std::string(kWeekdays[weekday_]) + ", " + day + " " + month + " " +
               year_;
      case Form::d_m_y:
        return day + " " + month + " " + year_;
      case Form::m_d_y:
        return month + " " + day + ", " + year_;
      case Form::m_short_d_y:
        return month.substr(0, 3) + " " + day + " " + year_;
      case Form::numbers:
        return day + "." + std::to_string(month_) + "." + year_;
    }
    return "";
  }

  std::string iso() const {
    const auto two = [](unsigned number) {
      return (number < 10 ? "0" : "") + std::to_string(number);
    };
    return year_ + "-" + two(month_) + "-" + two(day_);
  }

 private:
  unsigned weekday_, month_ = 0, day_ = 0;
  std::string year_;
};

}  // namespace

void make_date_pairs(const DateMaking& making, const VisitPair& visit) {
  using namespace std::chrono;
  constexpr sys_days kFirst{year(1900) / 1 / 1}, kEnd{year(2100) / 1 / 1};
  constexpr auto kDays = static_cast<int>((kEnd - kFirst).count());
  std::vector<std::string> splits;  // of each day
  SplitDealer dealer(making.valid, making.test);
  for (int i = 0; i < kDays; ++i) splits.push_back(dealer.next());

  for (int64_t i = 0; i < making.pairs; ++i) {
    Dice dice(Noise(making.seed, kDateStream, i).at({}));
    const int day = dice.pick(kDays);
    const Date date(kFirst + days(day));
    const std::string source = date.written(dice.one_of(kDateForms)),
                      target = date.iso();
    visit({splits[static_cast<size_t>(day)], source, target, "", i + 1});
  }
}

}  // namespace lagwise::data
