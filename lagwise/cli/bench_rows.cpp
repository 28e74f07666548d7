#include "lagwise/cli/bench_rows.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "bench/crossover.h"

namespace lagwise::cli {

using Json = nlohmann::ordered_json;

void show_progress(const std::string& text) {
  if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r\033[K{}", text);
}

Json row_json(const bench::BenchRow& row) {
  Json json = {{"case", row.name},
               {"direction", row.direction},
               {"batch", row.batch},
               {"n", row.n},
               {"heads", row.heads},
               {"d", row.d},
               {"e", row.e},
               {"threads", row.threads},
               {"ours_ms", row.ours_ms},
               {"baseline", row.baseline},
               {"baseline_ms", row.baseline_ms},
               {"ratio", row.ratio},
               {"gflops", row.gflops},
               {"peak_gflops", row.peak_gflops},
               {"fraction", row.fraction},
               {"extra_bytes", row.extra_bytes},
               {"baseline_bytes", row.baseline_bytes},
               {"weak_baseline", row.weak_baseline}};
  if (!row.note.empty()) {
    json["baseline_ms"] = json["ratio"] = json["baseline_bytes"] = nullptr;
    json["note"] = row.note;
  }
  return json;
}

void print_json(const std::vector<bench::BenchRow>& rows, const std::string& settings) {
  Json array = Json::array();
  for (const bench::BenchRow& row : rows) array.push_back(row_json(row));
  fmt::print(stderr, "{}\n", settings);
  fmt::print("{}\n", array.dump(2));
}

void print_row(const bench::BenchRow& row) {
  fmt::print(
      "{:>6} {:>2} {:>4} {:>4} {:>2} {:>10.4f} {:>17} {:>10.4f} {:>6.2f}{} {:>6.1f} "
      "{:>4.0f}% {:>8}\n",
      row.n, row.heads, row.d, row.e, row.threads, row.ours_ms, row.baseline,
      row.baseline_ms, row.ratio, row.weak_baseline ? '!' : ' ', row.gflops,
      100 * row.fraction, bench::human_bytes(row.extra_bytes));
}

void print_heading(const std::string& settings) {
  fmt::print(
      "{}\nratio: how many times faster than the baseline; of a cost, ours / "
      "baseline. peak: of an FMA loop.\n!: the baseline is slower than it should "
      "be, so the row proves nothing.\n\n",
      settings);
  fmt::print(
      "{:>6} {:>2} {:>4} {:>4} {:>2} {:>10} {:>17} {:>10} {:>6}  {:>6} {:>5} {:>8}\n",
      "N", "H", "D", "E", "t", "ours ms", "baseline", "its ms", "ratio", "GF/s", "peak",
      "memory");
}

void print_table(const std::vector<bench::BenchRow>& rows,
                 const std::string& settings) {
  print_heading(settings);
  std::string last;
  for (const bench::BenchRow& row : rows) {
    const std::string title = fmt::format("{}, {} thread(s)", row.name, row.threads);
    if (title != last) fmt::print("-- {}\n", title);
    last = title;
    print_row(row);
  }
}

}  // namespace lagwise::cli
