// The charts of `lagwise report`: training, loss by position, a long stream.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "lagwise/study/report/page.h"
#include "lagwise/study/run_files.h"

namespace lagwise {
namespace {

using report::Chart;
using report::Series;
using Lines = std::vector<Json> RunRecord::*;

Series curve(const std::string& name, const std::vector<Json>& lines,
             const std::string& x, const std::string& y) {
  Series series{name, {}, {}};
  for (const Json& line : lines) {
    const double at = number_in(line, x), value = number_in(line, y);
    if (std::isnan(at)) continue;
    series.x.push_back(at), series.y.push_back(value);
  }
  thin(series);
  return series;
}

bool has_points(const Series& series) {
  return std::any_of(series.y.begin(), series.y.end(),
                     [](double y) { return std::isfinite(y); });
}

/// A chart with one curve a run, from lines of its metrics.
void add_chart(report::Charts& card, Chart chart, const std::vector<RunRecord>& runs,
               Lines lines, const std::string& x, const std::string& y) {
  for (const RunRecord& run : runs)
    if (Series s = curve(run.name, run.*lines, x, y); has_points(s))
      chart.series.push_back(std::move(s));
  if (!chart.series.empty()) card.tabs.push_back(std::move(chart));
}

Chart titled(const std::string& tab, const std::string& title, report::Axis across,
             report::Axis up) {
  Chart chart{title, std::move(across), std::move(up), {}};
  chart.tab = tab;
  return chart;
}

/// Curves along positions, from the buckets or points of an evaluation.
struct Along {
  std::string kind, list;  ///< "position", "buckets"
  std::string key, error;  ///< what is drawn, and half of its interval
  bool logarithmic = false;
};

Series along(const RunRecord& run, const Along& what) {
  Series series{run.name, {}, {}};
  const Json& found = run.found(what.kind);
  if (!found.contains(what.list) || !found[what.list].is_array()) return series;
  for (const Json& part : found[what.list]) {
    const double begin = number_in(part, "begin"), end = number_in(part, "end");
    const double y = number_in(part, what.key), error = number_in(part, what.error);
    if (std::isnan(begin + end) || std::isnan(y)) continue;
    series.x.push_back(what.logarithmic ? end : (begin + end) / 2);
    series.y.push_back(y);
    series.low.push_back(y - (error > 0 ? error : 0));
    series.high.push_back(y + (error > 0 ? error : 0));
  }
  if (what.error.empty()) series.low.clear(), series.high.clear();
  return series;
}

/// The training length, if all runs that have one agree.
int64_t trained_length(const std::vector<RunRecord>& runs, const std::string& kind) {
  double length = 0;
  for (const RunRecord& run : runs) {
    const double trained = number_in(run.found(kind), "trained");
    if (std::isnan(trained)) continue;
    if (length > 0 && trained != length) return 0;
    length = trained;
  }
  return int64_t(length);
}

/// Where runs were not all judged on the same split: which on which.
std::string splits_note(const std::vector<RunRecord>& runs, const std::string& kind) {
  std::map<std::string, std::vector<std::string>> by_split;
  for (const RunRecord& run : runs)
    if (const Json& found = run.found(kind); found.is_object())
      by_split[text_in(found, "split")].push_back(run.name);
  std::string note;
  for (const auto& [split, names] : by_split)
    if (by_split.size() > 1)
      note += fmt::format(" On the split {}: {}.", split, fmt::join(names, ", "));
  return note;
}

void mark_trained(Chart& chart, const std::vector<RunRecord>& runs,
                  const std::string& kind) {
  const int64_t length = trained_length(runs, kind);
  if (length == 0) return;
  chart.mark = double(length);
  chart.mark_label = fmt::format("training length {}", length);
}

/// The same targets with shorter and longer contexts.
Chart context_chart(const std::vector<RunRecord>& runs) {
  Chart chart = titled("context", "Loss against the length of context",
                       {"tokens of context", true, "count"}, {"loss, nats per token"});
  chart.note =
      "The same tokens, the last of each window, seen with so many tokens before them. "
      "A line that falls beyond the training length uses a longer past.";
  for (const RunRecord& run : runs) {
    const Json& found = run.found("position");
    if (!found.contains("contexts") || !found["contexts"].is_array()) continue;
    const auto& points = found["contexts"].get_ref<const Json::array_t&>();
    if (Series s = curve(run.name, points, "context", "loss"); has_points(s))
      chart.series.push_back(std::move(s));
  }
  return chart;
}

report::Charts position_card(const std::vector<RunRecord>& runs) {
  report::Charts card;
  Chart loss = titled("loss", "Loss by position", {"position", false, "count"},
                      {"loss, nats per token"});
  loss.note =
      "Solid: the whole past is seen. Dashed, the restart line: the same tokens seen "
      "through windows of the training length. A solid line below its dashed one uses "
      "long context; above it, long context harms. Bands: 95 % confidence.";
  Chart difference =
      titled("against restart", "Loss against restarting the window",
             {"position", false, "count"}, {"difference, nats per token"});
  difference.note =
      "The loss with the whole past, less that of restarting, paired by window. Below "
      "0 "
      "long context is used, above 0 it harms. Bands: 95 % confidence.";
  for (const RunRecord& run : runs) {
    Series whole = along(run, {"position", "buckets", "loss", "error"});
    Series restart = along(run, {"position", "buckets", "restart", ""});
    Series less = along(run, {"position", "buckets", "difference", "difference_error"});
    if (has_points(whole)) loss.series.push_back(whole);
    if (has_points(less)) difference.series.push_back(less);
    if (!has_points(restart)) continue;
    restart.label = run.name + ", restart";
    restart.of = run.name;
    restart.dashed = true;
    loss.series.push_back(restart);
  }
  Chart context = context_chart(runs);
  for (Chart* chart : {&loss, &difference, &context}) {
    mark_trained(*chart, runs, "position");
    chart->note += splits_note(runs, "position");
    if (!chart->series.empty()) card.tabs.push_back(std::move(*chart));
  }
  return card;
}

report::Charts stream_card(const std::vector<RunRecord>& runs) {
  report::Charts card;
  const report::Axis position{"position in the stream", true, "count"};
  std::vector<std::pair<std::string, Chart>> charts = {
      {"loss",
       titled("loss", "Along one long stream", position, {"loss, nats per token"})},
      {"tokens_per_second", titled("speed", "Speed along the stream", position,
                                   {"tokens per second", false, "count"})},
      {"state_bytes", titled("state", "Memory the model keeps of the past", position,
                             {"decoding state", true, "bytes"})}};
  for (auto& [key, chart] : charts) {
    for (const RunRecord& run : runs)
      if (Series s = along(run, {"stream", "points", key, "", true}); has_points(s))
        chart.series.push_back(std::move(s));
    mark_trained(chart, runs, "stream");
    chart.note += splits_note(runs, "stream");
    if (!chart.series.empty()) card.tabs.push_back(std::move(chart));
  }
  return card;
}

/// Loss on held-out data by minutes of training. An evaluation is as old as the line of
/// training before it.
Series loss_by_minutes(const RunRecord& run) {
  std::map<double, double> minutes;  // of a step
  for (const Json& line : run.training)
    minutes[number_in(line, "step")] = number_in(line, "seconds") / 60;
  Series series{run.name, {}, {}};
  for (const Json& line : run.evaluations) {
    const auto after = minutes.upper_bound(number_in(line, "step"));
    if (after == minutes.begin()) continue;
    series.x.push_back(std::prev(after)->second);
    series.y.push_back(number_in(line, "loss"));
  }
  return series;
}

/// What tells a run from the other seeds of the same recipe is the end of its name:
/// "rope/seed-2", "rope, linear, seed 2"; where it is all of it, "seed-2", they are called
/// by their model.
std::string name_without_seed(const RunRecord& run) {
  const size_t number = run.name.find_last_not_of("0123456789") + 1;
  const std::string before = run.name.substr(0, number);
  const ModelConfig& model = run.summary.recipe.model;
  if (before == "seed-") return model.encoding + ", " + model.attention;
  for (const std::string mark : {"/seed-", ", seed "})
    if (before.ends_with(mark)) return before.substr(0, number - mark.size());
  return run.name;
}

/// A series for each recipe: the mean over those of its seeds that have as many points as
/// the first.
std::vector<Series> mean_over_seeds(const std::vector<RunRecord>& runs,
                                    Series (*of)(const RunRecord&)) {
  std::map<std::string, std::vector<Series>> seeds;
  std::vector<std::string> order;
  for (const RunRecord& run : runs) {
    Series one = of(run);
    if (!has_points(one)) continue;
    Recipe shared = run.summary.recipe;
    shared.title.clear(), shared.train.seed = 0;
    std::vector<Series>& same = seeds[recipe_text(shared)];
    if (same.empty()) order.push_back(recipe_text(shared));
    if (same.size() == 1) same[0].label = name_without_seed(run);
    if (same.empty() || same[0].x.size() == one.x.size())
      same.push_back(std::move(one));
  }
  std::vector<Series> means;
  for (const std::string& key : order) {
    const std::vector<Series>& same = seeds.at(key);
    Series mean = same[0];
    const auto count = static_cast<double>(same.size());
    for (size_t i = 0; i < mean.x.size(); ++i) {
      mean.x[i] = mean.y[i] = 0;
      for (const Series& one : same)
        mean.x[i] += one.x[i] / count, mean.y[i] += one.y[i] / count;
    }
    means.push_back(std::move(mean));
  }
  return means;
}

/// One point: how fast a run writes, and how well it had learned in the end.
Series loss_by_writing(const RunRecord& run) {
  const double speed = writing_speed(run);
  if (run.evaluations.empty() || std::isnan(speed)) return {run.name, {}, {}};
  return {run.name, {speed}, {number_in(run.evaluations.back(), "loss")}};
}

}  // namespace

void thin(Series& series, size_t most) {
  const size_t count = series.x.size();
  if (count <= most) return;
  Series thinned{series.label, {}, {}};
  for (size_t bin = 0; bin < most; ++bin) {
    const size_t begin = bin * count / most, end = (bin + 1) * count / most;
    double x = 0, y = 0;
    for (size_t i = begin; i < end; ++i) x += series.x[i], y += series.y[i];
    thinned.x.push_back(std::round(x / double(end - begin)));
    thinned.y.push_back(y / double(end - begin));
  }
  series.x = std::move(thinned.x), series.y = std::move(thinned.y);
}

report::Section cost_section(const std::vector<RunRecord>& runs) {
  const report::Axis up{"loss on held-out data, nats"};
  Chart minutes = titled("training", "Loss against minutes of training",
                         {"minutes of training"}, up);
  minutes.clip = true;
  Chart writing =
      titled("writing", "Loss against the speed of writing",
             {"tokens per second of generation, one sequence", true, "count"}, up);
  writing.note =
      "Further down it knows more, further to the right it writes faster. The loss is "
      "that of the last evaluation; runs that differ in their seed alone are one "
      "point, "
      "their mean.";
  minutes.series = mean_over_seeds(runs, loss_by_minutes);
  writing.series = mean_over_seeds(runs, loss_by_writing);
  report::Charts card;
  for (Chart* chart : {&minutes, &writing})
    if (!chart->series.empty()) card.tabs.push_back(std::move(*chart));
  report::Section section{"Quality for cost", "", {}};
  if (!card.tabs.empty()) section.blocks.push_back(std::move(card));
  return section;
}

report::Section training_section(const std::vector<RunRecord>& runs) {
  const report::Axis step{"step", false, "count"};
  report::Section section{"Training", "", {}};
  report::Charts held, train;
  add_chart(held, titled("by step", "Loss on held-out data", step, {"loss, nats"}),
            runs, &RunRecord::evaluations, "step", "loss");
  Chart loss = titled("loss", "Training loss", step, {"loss, nats per target"});
  loss.clip = true;
  add_chart(train, loss, runs, &RunRecord::training, "step", "loss");
  loss.tab = "by time", loss.title = "Training loss by time";
  loss.across = {"seconds of training"};
  add_chart(train, loss, runs, &RunRecord::training, "seconds", "loss");
  add_chart(
      train,
      titled("speed", "Speed of training", step, {"tokens per second", false, "count"}),
      runs, &RunRecord::training, "step", "tokens_per_second");
  Chart norm = titled("gradient", "Norm of the gradient", step, {"norm", true});
  add_chart(train, norm, runs, &RunRecord::training, "step", "grad_norm");
  for (report::Charts* card : {&held, &train})
    if (!card->tabs.empty()) section.blocks.push_back(std::move(*card));
  return section;
}

report::Section length_section(const std::vector<RunRecord>& runs) {
  report::Section section{"Beyond the training length", "", {}};
  for (report::Charts& card : std::vector{position_card(runs), stream_card(runs)})
    if (!card.tabs.empty()) section.blocks.push_back(std::move(card));
  return section;
}

}  // namespace lagwise
