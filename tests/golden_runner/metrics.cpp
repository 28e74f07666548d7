// What is measured of attention maps and of music, and the nucleus of a distribution.

#include <ATen/ATen.h>

#include <algorithm>

#include "lagwise/core/map_by_lag.h"
#include "lagwise/core/nucleus.h"
#include "lagwise/data/music/style_profile.h"
#include "tests/golden_runner/golden_run.h"

namespace lagwise::golden {
namespace {

using nlohmann::json;

std::vector<double> numbers(const at::Tensor& x) {
  const at::Tensor flat = x.to(at::kDouble).contiguous();
  const double* data = flat.data_ptr<double>();
  return {data, data + flat.numel()};
}

void expect_near(Run& run, const std::string& what, double got, double want) {
  const Tolerance allowed =
      run.dtype == at::kDouble ? run.golden.output : run.golden.single;
  run.expect(std::abs(got - want) <= allowed.atol + allowed.rtol * std::abs(want),
             what + " " + std::to_string(want) + ", got " + std::to_string(got));
}

// "(2, 13, None)": the first query, the one after the last, and the farthest lag.
MapRegion region_of(const std::string& text) {
  std::vector<int64_t> values;
  std::string word;
  for (const char c : text + ",") {
    if (std::isalnum(static_cast<unsigned char>(c))) word += c;
    if (c != ',') continue;
    values.push_back(word == "None" ? -1 : std::stoll(word));
    word.clear();
  }
  return {values.at(0), values.at(1), values.at(2)};
}

void maps(Run& run) {
  const json results = run.golden.param<json>("results");
  for (const auto& [name, regions] : results.items()) {
    const at::Tensor stored = run.given("map_" + name);
    const std::vector<double> entries = numbers(stored);
    const MatView<const double> map{entries.data(), stored.size(0), stored.size(1),
                                    stored.size(1), 1};
    for (const auto& [text, want] : regions.items()) {
      const MapRegion region = region_of(text);
      expect_near(run, name + text + " translation invariance",
                  variance_within_lags(map, region),
                  want.at("translation_invariance").get<double>());
      expect_near(run, name + text + " monotonicity", inversions(map, region),
                  want.at("monotonicity").get<double>());
    }
  }
}

void sampling(Run& run) {
  const std::vector<double> logits = numbers(run.given("logits"));
  const json cases = run.golden.param<json>("nucleus");
  for (const json& one : cases) {
    const Nucleus got = nucleus(softmax(logits, one.at("temperature").get<double>()),
                                one.at("top_p").get<double>());
    run.expect(got.ids == one.at("candidates").get<std::vector<int64_t>>(),
               "the candidates of " + one.dump());
    const auto want = one.at("probs").get<std::vector<double>>();
    for (size_t i = 0; i < std::min(want.size(), got.probabilities.size()); ++i)
      expect_near(run, "probability", got.probabilities[i], want[i]);
  }
}

constexpr int kTicksPerBeat = 12;

std::vector<data::Note> notes_of(Run& run, const std::string& name) {
  const at::Tensor rows = run.given(name).contiguous();  // onset, duration, pitch
  std::vector<data::Note> notes;
  for (int64_t i = 0; i < rows.size(0); ++i) {
    const int64_t* row = rows.data_ptr<int64_t>() + 3 * i;
    notes.push_back({row[0], row[0] + row[1], static_cast<int>(row[2]), 64});
  }
  return notes;
}

// Counts as a density: over their sum and the area of a bin.
at::Tensor density(const data::StyleProfile& counts, at::IntArrayRef shape,
                   double area) {
  const at::Tensor x = at::tensor(counts, at::kDouble).reshape(shape);
  return x / (x.sum() * area);
}

void style(Run& run) {
  const std::vector<data::Note> a = notes_of(run, "notes_a"),
                                b = notes_of(run, "notes_b");
  const auto pairs = [](const auto& notes) {
    return data::time_pitch_profile(notes, kTicksPerBeat);
  };
  const auto onsets = [](const auto& notes) {
    return data::onset_duration_profile(notes, kTicksPerBeat);
  };
  constexpr double kSixth = 1.0 / 6;
  run.compare("time_pitch_a", density(pairs(a), {41, 24}, kSixth));
  run.compare("onset_duration_a_fixed", density(onsets(a), {24, 12}, kSixth * kSixth));
  const json want = run.golden.param<json>("style");
  expect_near(run, "time-pitch cosine", data::cosine_similarity(pairs(a), pairs(b)),
              want.at("time_pitch_cosine").get<double>());
  expect_near(run, "onset-duration cosine",
              data::cosine_similarity(onsets(a), onsets(b)),
              want.at("onset_duration_cosine_intended").get<double>());
}

void metrics(Run& run) {
  maps(run);
  sampling(run);
  style(run);
}

const RegisterHandler metrics_row({"metrics", "metrics", metrics});

}  // namespace
}  // namespace lagwise::golden
