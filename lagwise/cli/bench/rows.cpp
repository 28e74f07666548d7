#include "lagwise/cli/bench/rows.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>

#include "bench/crossover.h"
#include "bench/timing.h"
#include "lagwise/cli/machine.h"
#include "lagwise/core/machine.h"

namespace lagwise::cli {

using Json = nlohmann::ordered_json;

namespace {

/// What was measured on: rows of several machines end up in one table.
struct MachineNames {
  std::string cpu, simd;
};

MachineNames machine_names() {
  const std::vector<std::string> usable = usable_simd();
  return {cpu_model(), usable.empty() ? "" : usable.front()};
}

Json row_json(const bench::BenchRow& row) {
  static const MachineNames machine = machine_names();
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
  if (row.floor.floor > 0) {
    json["gemm_gflops"] = row.floor.gemm_gflops;
    json["baseline_share"] = row.floor.share;
    json["floor_share"] = row.floor.floor;
  }
  json["cpu"] = machine.cpu;
  json["simd"] = machine.simd;
  if (!row.note.empty()) {
    json["baseline_ms"] = json["ratio"] = json["baseline_bytes"] = nullptr;
    json["note"] = row.note;
  }
  return json;
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

}  // namespace

void show_progress(const std::string& text) {
  if (isatty(STDERR_FILENO)) fmt::print(stderr, "\r\033[K{}", text);
}

RowPrinter::RowPrinter(bool json, const std::string& settings) : json_(json) {
  if (json_) {
    fmt::print(stderr, "{}\n", settings);
    fmt::print("[");
  } else {
    print_heading(settings);
  }
}

void RowPrinter::row(const bench::BenchRow& row, const Json& more,
                     const std::string& under) {
  show_progress("");
  if (json_)
    print_json(row, more);
  else
    print_line(row, under);
  std::fflush(stdout);
}

void RowPrinter::note(const std::string& text) {
  show_progress("");
  fmt::print(json_ ? stderr : stdout, "{}\n", text);
}

void RowPrinter::finish() {
  show_progress("");
  if (json_) fmt::print("\n]\n");
}

void RowPrinter::print_json(const bench::BenchRow& row, const Json& more) {
  Json json = row_json(row);
  if (more.is_object()) json.update(more);
  fmt::print("{}\n  {}", last_.empty() ? "" : ",", json.dump());
  last_ = row.name;
}

void RowPrinter::print_line(const bench::BenchRow& row, const std::string& under) {
  const std::string title = fmt::format("{}, {} thread(s)", row.name, row.threads);
  if (title != last_) fmt::print("-- {}\n", title);
  last_ = title;
  fmt::print(
      "{:>6} {:>2} {:>4} {:>4} {:>2} {:>10.4f} {:>17} {:>10.4f} {:>6.2f}{} {:>6.1f} "
      "{:>4.0f}% {:>8}\n",
      row.n, row.heads, row.d, row.e, row.threads, row.ours_ms, row.baseline,
      row.baseline_ms, row.ratio, row.weak_baseline ? '!' : ' ', row.gflops,
      100 * row.fraction, human_bytes(row.extra_bytes));
  if (!under.empty()) fmt::print("   {}\n", under);
}

void print_rows(bool json, const std::vector<bench::BenchRow>& rows) {
  show_progress("");
  RowPrinter printer(json, bench::describe_settings());
  for (const bench::BenchRow& row : rows) printer.row(row);
  printer.finish();
}

}  // namespace lagwise::cli
