#include "lagwise/cli/eval/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "lagwise/report/chart.h"

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
  return text;
}

std::string verdict(const PositionLoss& part) {
  if (!std::isfinite(part.difference_error))
    return "one window cannot tell whether longer context is used";
  const bool harms = part.difference > part.difference_error;
  const bool used = part.difference < -part.difference_error;
  return fmt::format("longer context {} ({} nats against a restarted window)",
                     harms  ? "harms"
                     : used ? "is used"
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
    const std::string span =
        fmt::format("{} to {}", multiple(part.begin, found.trained),
                    multiple(part.end, found.trained));
    const bool beyond = part.end > found.trained;
    text += fmt::format(
        "{:<14} {:>16} {:>16} {:>17}\n", span, give_or_take(part.loss, part.error),
        beyond ? give_or_take(part.restart, part.restart_error) : "the same",
        beyond ? give_or_take(part.difference, part.difference_error, true) : "");
    if (beyond) sentences += fmt::format("{}: {}\n", span, verdict(part));
  }
  return text + "\n" + sentences + "\n" + report::terminal_chart(position_chart(found));
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
