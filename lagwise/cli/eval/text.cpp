#include "lagwise/cli/eval/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lagwise/cli/terminal/utf8.h"
#include "lagwise/report/chart.h"
#include "lagwise/train/confidence.h"

namespace lagwise::cli {
namespace {

/// "0.5x" of 256 tokens at a training length of 512.
std::string multiple(int64_t tokens, int64_t trained) {
  if (tokens == 0) return "0";
  return fmt::format("{:.4g}x",
                     static_cast<double>(tokens) / static_cast<double>(trained));
}

std::string give_or_take(double x, double error, bool sign = false) {
  const std::string mean = sign ? fmt::format("{:+.3f}", x) : fmt::format("{:.3f}", x);
  return std::isfinite(error) ? fmt::format("{} ± {:.3f}", mean, error) : mean;
}

report::Chart position_chart(const LossByPosition& found) {
  report::Series full{"full context", {}, {}}, restart{"restarted window", {}, {}};
  for (const PositionLoss& part : found.buckets) {
    const double middle = 0.5 * static_cast<double>(part.begin + part.end);
    full.x.push_back(middle), full.y.push_back(part.loss);
    restart.x.push_back(middle), restart.y.push_back(part.restart);
  }
  report::Chart chart{
      "loss by position", {"position"}, {"nats per token"}, {full, restart}};
  chart.mark = static_cast<double>(found.trained), chart.mark_label = "trained";
  return chart;
}

std::string span_text(const PositionLoss& part, int64_t trained) {
  return fmt::format("{} to {}", multiple(part.begin, trained),
                     multiple(part.end, trained));
}

/// What the best predictor loses on the same targets, and by how much both lie above
/// one who knows what they were drawn from.
std::string ideal_text(const LossByPosition& found) {
  if (found.spans.empty() || std::isnan(found.spans[0].best)) return "";
  std::string text = fmt::format(
      "\nwhat can be known, on the same targets; excess: above the loss of one who "
      "knows "
      "the source\n\n{:<14} {:>9} {:>9} {:>9} {:>13} {:>13}\n",
      "position", "model", "Bayes", "source", "model excess", "Bayes excess");
  for (const PositionLoss& part : found.spans)
    text += fmt::format("{:<14} {:>9.3f} {:>9.3f} {:>9.3f} {:>13.3f} {:>13.3f}\n",
                        span_text(part, found.trained), part.loss, part.best,
                        part.source, part.loss - part.source, part.best - part.source);
  return text;
}

std::string contexts_text(const LossByPosition& found) {
  if (found.contexts.empty()) return "";
  std::string text = fmt::format(
      "\nloss against context: the last {} targets of each window, seen with so many "
      "tokens before them\n\n{:<14} {:>16} {:>17}\n",
      found.context_targets, "context", "loss",
      fmt::format("against {}", found.trained));
  for (const ContextLoss& one : found.contexts)
    text += fmt::format(
        "{:<14} {:>16} {:>17}\n",
        fmt::format("{} ({})", multiple(one.context, found.trained), one.context),
        give_or_take(one.loss, one.error),
        one.context == found.trained
            ? ""
            : give_or_take(one.difference, one.difference_error, true));
  return text;
}

/// Points with the same number of doublings of the chunk, as one row.
struct StreamRow {
  int64_t begin = 0, end = 0, state_bytes = 0, resident_bytes = 0;
  double loss = 0, restart = 0, seconds = 0;  ///< summed over tokens

  void add(const StreamPoint& point) {
    const auto count = static_cast<double>(point.end - point.begin);
    if (end == 0) begin = point.begin;
    end = point.end;
    loss += count * point.loss, restart += count * point.restart;
    seconds += count / point.tokens_per_second;
    state_bytes = point.state_bytes, resident_bytes = point.resident_bytes;
  }
  double count() const { return static_cast<double>(end - begin); }
};

std::vector<StreamRow> stream_rows(const LossAlongStream& found) {
  std::vector<StreamRow> rows(1);
  int64_t edge = std::max(found.chunk, found.trained);
  for (const StreamPoint& point : found.points) {
    if (point.end > edge && rows.back().end > 0) {
      rows.emplace_back();
      while (edge < point.end) edge *= 2;
    }
    rows.back().add(point);
  }
  return rows;
}

report::Chart stream_chart(const LossAlongStream& found) {
  report::Series full{"stream", {}, {}}, restart{"restarted window", {}, {}};
  for (const StreamPoint& point : found.points) {
    full.x.push_back(static_cast<double>(point.end)), full.y.push_back(point.loss);
    restart.x.push_back(static_cast<double>(point.end));
    restart.y.push_back(point.restart);
  }
  report::Chart chart{
      "loss along the stream", {"position", true}, {"nats per token"}, {full, restart}};
  chart.mark = static_cast<double>(found.trained), chart.mark_label = "trained";
  return chart;
}

}  // namespace

std::string metric_text(const Evaluation& found) {
  std::string text = fmt::format(
      "{} {:.4g}  (loss {:.4f} nats; {} examples, {} "
      "targets of {})\n",
      found.metric, found.value, found.loss, found.examples, found.targets,
      found.split);
  for (const auto& [name, value] : found.more)
    text += fmt::format("{} {:.4g}\n", name, value);
  if (std::isfinite(found.guess))
    text += fmt::format("a blind guess: {} {:.4g}\n", found.metric, found.guess);
  return text;
}

std::string answers_text(const Answers& answers) {
  constexpr int kShown = 3;
  std::string text;
  int shown = 0;
  for (const Answer& one : answers.all)
    if (one.written != one.wanted && shown++ < kShown)
      text += fmt::format("  {}\n    wanted   {}\n    written  {}\n",
                          shown_text(one.source), shown_text(one.wanted),
                          shown_text(one.written));
  return text.empty() ? "" : "answers that were not as wanted, such as:\n" + text;
}

std::string pseudo_text(const PseudoPerplexity& found) {
  return fmt::format(
      "pseudo-perplexity {:.4g}  ({} nats per token, {:.1f} % right; each of {} tokens "
      "hidden in turn, {} windows of {})\n",
      found.perplexity, give_or_take(found.loss, found.error),
      100 * static_cast<double>(found.right) / static_cast<double>(found.tokens),
      found.tokens, found.windows, found.split);
}

std::string verdict(const PositionLoss& part) {
  if (!std::isfinite(part.difference_error))
    return "one window cannot tell whether longer context is used";
  const int sign = sure_sign({part.difference, part.difference_error});
  return fmt::format("longer context {} ({} nats against a restarted window)",
                     sign > 0   ? "harms"
                     : sign < 0 ? "is used"
                                : "neither helps nor harms",
                     give_or_take(part.difference, part.difference_error, true));
}

std::string position_text(const LossByPosition& found) {
  std::string text = fmt::format(
      "loss by position in nats per token: {} windows of {}, trained at {}; ± 95 % "
      "confidence over windows\n\n{:<14} {:>16} {:>16} {:>17}\n",
      found.windows, found.length, found.trained, "position", "full context",
      "restarted", "difference");
  std::string sentences;
  for (const PositionLoss& part : found.spans) {
    const std::string span = span_text(part, found.trained);
    const bool beyond = part.end > found.trained;
    text += fmt::format(
        "{:<14} {:>16} {:>16} {:>17}\n", span, give_or_take(part.loss, part.error),
        beyond ? give_or_take(part.restart, part.restart_error) : "the same",
        beyond ? give_or_take(part.difference, part.difference_error, true) : "");
    if (beyond) sentences += fmt::format("{}: {}\n", span, verdict(part));
  }
  return text + "\n" + sentences + ideal_text(found) + contexts_text(found) + "\n" +
         report::terminal_chart(position_chart(found));
}

std::string lengths_text(const MetricByLength& found) {
  std::string text =
      fmt::format("{} by length, trained at {}\n", found.metric, found.trained);
  for (const auto& [tokens, at] : found.lengths)
    text += fmt::format("{:<8} {:>8.4f}  ({} examples of {} tokens, {} targets)\n",
                        multiple(tokens, found.trained), at.value, at.examples, tokens,
                        at.targets);
  return text;
}

std::string stream_text(const LossAlongStream& found) {
  std::string text = fmt::format(
      "one stream of {}, in chunks of {} with carried state; trained at {}; loss in "
      "nats per token\n\n{:<16} {:>8} {:>10} {:>9} {:>12} {:>12}\n",
      found.split, found.chunk, found.trained, "position", "loss", "restarted",
      "tokens/s", "state MB", "process MB");
  for (const StreamRow& row : stream_rows(found))
    text +=
        fmt::format("{:<16} {:>8.3f} {:>10.3f} {:>9.0f} {:>12.3f} {:>12.0f}\n",
                    fmt::format("{} to {}", row.begin, row.end), row.loss / row.count(),
                    row.restart / row.count(), row.count() / row.seconds,
                    static_cast<double>(row.state_bytes) / 1e6,
                    static_cast<double>(row.resident_bytes) / 1e6);
  if (!found.stopped.empty())
    text += fmt::format("stopped at {}: {}\n", found.points.back().end, found.stopped);
  return text + "\n" + report::terminal_chart(stream_chart(found));
}

}  // namespace lagwise::cli
