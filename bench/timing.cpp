#include "bench/timing.h"

#include <ATen/Parallel.h>
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "lagwise/core/clock.h"
#include "lagwise/core/machine.h"
#include "lagwise/ops/torch/blas_threads.h"

namespace lagwise::bench {
namespace {

double milliseconds_of(const Side& side, int calls) {
  const auto begin = Clock::now();
  for (int i = 0; i < calls; ++i) side.run();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// What is learned from the warm-up, and the times of the repetitions.
struct Course {
  int calls = 1;
  int repetitions = 0;
  std::vector<double> ms;
};

/// The first call pays for faults and caches; the second says how long one takes.
Course warm_up(const Side& side, const Patience& patience) {
  set_threads(side.threads);
  side.run();
  const double once = std::max(milliseconds_of(side, 1), 1e-6);
  Course course;
  course.calls = static_cast<int>(std::clamp(patience.repetition_ms / once, 1.0, 1e5));
  const double affordable = patience.budget_ms / (once * course.calls);
  course.repetitions = static_cast<int>(
      std::clamp(affordable, double(patience.least), double(patience.most)));
  return course;
}

Times summary(std::vector<double> ms) {
  std::sort(ms.begin(), ms.end());
  const size_t middle = ms.size() / 2;
  const double median =
      ms.size() % 2 == 1 ? ms[middle] : 0.5 * (ms[middle - 1] + ms[middle]);
  return {median, ms.front()};
}

/// Calls until threads that others left spinning have gone to sleep; how long one of
/// these calls takes.
double settle(const Side& side) {
  constexpr double kSpinning = 40;  // ms; OpenBLAS waits 2^26 ticks
  double spent = 0, last = 0;
  while (spent < kSpinning) spent += last = milliseconds_of(side, 1);
  return std::max(last, 1e-6);
}

/// One round of a side by itself.
std::vector<double> time_round(const Side& side, const Patience& patience) {
  constexpr double kVeryLong = 2500;  // ms
  set_threads(side.threads);
  const double once = settle(side);
  if (once > kVeryLong) return {once};
  const int calls =
      static_cast<int>(std::clamp(patience.repetition_ms / once, 1.0, 1e5));
  std::vector<double> ms;
  double spent = 0;
  while (int(ms.size()) < patience.least ||
         (int(ms.size()) < patience.most && spent < patience.budget_ms)) {
    ms.push_back(milliseconds_of(side, calls) / calls);
    spent += ms.back() * calls;
  }
  return ms;
}

}  // namespace

std::vector<Times> time_in_turn(const std::vector<Side>& sides,
                                const Patience& patience) {
  std::vector<Course> courses;
  int rounds = 0;
  for (const Side& side : sides) {
    courses.push_back(warm_up(side, patience));
    rounds = std::max(rounds, courses.back().repetitions);
  }
  for (int round = 0; round < rounds; ++round) {
    for (size_t i = 0; i < sides.size(); ++i) {
      Course& course = courses[i];
      if (round >= course.repetitions) continue;
      set_threads(sides[i].threads);
      course.ms.push_back(milliseconds_of(sides[i], course.calls) / course.calls);
    }
  }
  std::vector<Times> times;
  for (const Course& course : courses) times.push_back(summary(course.ms));
  return times;
}

std::vector<Times> time_apart(const std::vector<Side>& sides,
                              const Patience& patience) {
  constexpr double kLong = 600;  // ms
  std::vector<std::vector<double>> ms(sides.size());
  int rounds = 3;
  for (int round = 0; round < rounds; ++round)
    for (size_t i = 0; i < sides.size(); ++i) {
      const std::vector<double> more = time_round(sides[i], patience);
      if (more.back() > kLong) rounds = 1;
      ms[i].insert(ms[i].end(), more.begin(), more.end());
    }
  std::vector<Times> times;
  for (const std::vector<double>& each : ms) times.push_back(summary(each));
  return times;
}

void set_threads(int threads) {
  // Not at::set_num_threads: it also makes a new pool for other parts of torch, whose
  // threads spin and take a core from what is timed next. The first call lets ATen set
  // its default, which would otherwise come later and undo ours.
  if (at::get_num_threads() != threads) omp_set_num_threads(threads);
}

void set_blas_threads(int threads) { ops::set_blas_threads(threads); }

std::string describe_settings() {
  return "float32; " + std::to_string(usable_cores()) +
         " cores; sides timed in turn, median; malloc keeps freed memory (M_MMAP_MAX "
         "0, "
         "M_TRIM_THRESHOLD 2 GB, M_TOP_PAD 64 MiB) and has large pages; BLAS: " +
         ops::blas_name();
}

}  // namespace lagwise::bench
