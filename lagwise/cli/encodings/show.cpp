// `lagwise encodings show`: what an encoding makes of the lag, as a picture.

#include "lagwise/cli/encodings/show.h"

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/zeros.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/terminal/progress.h"
#include "lagwise/core/map_by_lag.h"
#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/encodings/kernel_by_lag.h"
#include "lagwise/report/page.h"
#include "lagwise/study/report/kernel_chart.h"

namespace lagwise::cli {
namespace {

struct ShowEncodingFlags {
  std::string text, html;
  int length = 512, heads = 4, dim = 32, draws = 32, seed = 1;
};

constexpr int64_t kBeyond = 8;  // how many training lengths to look

/// A bare name that needs options stands for the example of its row.
std::string text_shown(const std::string& text) {
  for (const EncodingRow& row : encodings())
    if (row.name == text) return std::string(row.text());
  return text;
}

Kernel shown_kernel(const ShowEncodingFlags& flags, const std::string& text,
                    int64_t lags, Progress& progress) {
  const auto encoding = make_encoding(
      text, {.heads = flags.heads, .dim = flags.dim, .seed = uint64_t(flags.seed)});
  return kernel_of(*encoding, {0, 1, encoding->layer(0, 1)},
                   {.seed = uint64_t(flags.seed)}, flags.draws, lags,
                   [&](double fraction) { progress.update(fraction, text); });
}

/// Whether it has an answer for positions, and lags, up to `lags` - 1.
bool reaches(Encoding& encoding, int64_t lags) {
  const HeadShape& shape = encoding.shape();
  const Placement at{.query_start = lags - 1};
  const at::Tensor row = at::zeros({1, shape.heads, 1, shape.dim});
  try {
    encoding.embed(at::zeros({1, 1, shape.model_width()}), at);
    encode_once(encoding, row, row, at);
    return true;
  } catch (const std::invalid_argument&) {
    return false;
  }
}

/// As far as the encoding reaches: a table of positions or lags may end before.
int64_t reach_of(const ShowEncodingFlags& flags) {
  const auto encoding =
      make_encoding(flags.text, {.heads = flags.heads, .dim = flags.dim});
  const int64_t most = kBeyond * flags.length;
  if (encoding->traits().longest != "table" || reaches(*encoding, most)) return most;
  int64_t known = 1, beyond = most;
  while (beyond - known > 1) {
    const int64_t middle = known + (beyond - known) / 2;
    (reaches(*encoding, middle) ? known : beyond) = middle;
  }
  return known;
}

/// `text` with `key` set to `value`, whatever it was.
std::string with_option(const std::string& text, const std::string& key,
                        int64_t value) {
  const auto colon = text.find(':');
  std::string result = text.substr(0, colon) + ":" + key + "=" + std::to_string(value);
  if (colon == std::string::npos) return result;
  std::string_view rest = std::string_view(text).substr(colon + 1);
  while (!rest.empty()) {
    const std::string_view option = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), option.size() + 1));
    if (!option.starts_with(key + "=")) result += "," + std::string(option);
  }
  return result;
}

bool has_option(const std::string& text, const std::string& key) {
  const std::string name = text.substr(0, text.find(':'));
  for (const EncodingRow& row : encodings()) {
    if (row.name != name) continue;
    for (const Spec::Option& option : encoding_options(row))
      if (option.key == key) return true;
  }
  return false;
}

/// Where the number of realizations can be chosen: the spread of the kernel over draws,
/// root mean square over lags below 64 and heads, which falls as R^-1/2 for independent
/// ones.
report::Chart spread_chart(const ShowEncodingFlags& flags, Progress& progress) {
  report::Series measured{"measured", {}, {}}, half{"R^-1/2", {}, {}};
  for (int64_t r = 8; r <= 512; r *= 2) {
    const Kernel kernel =
        shown_kernel(flags, with_option(flags.text, "realizations", r), 64, progress);
    measured.x.push_back(double(r));
    measured.y.push_back(std::sqrt(kernel.spread.square().mean().item<double>()));
    half.x.push_back(double(r));
    half.y.push_back(measured.y[0] * std::sqrt(8 / double(r)));
  }
  return {flags.text + ": spread over draws against realizations",
          {"realizations", true},
          {"standard deviation", true},
          {measured, half}};
}

/// How close the kernel of one draw comes to a function of the lag that falls with it,
/// mean over heads.
std::string measures(const ShowEncodingFlags& flags, int64_t reach) {
  const auto encoding = make_encoding(
      flags.text,
      {.heads = flags.heads, .dim = flags.dim, .seed = uint64_t(flags.seed)});
  const int64_t n = std::min<int64_t>({flags.length, reach, 128});
  const at::Tensor maps =
      kernel_by_pair(*encoding, n, n, {.seed = uint64_t(flags.seed)},
                     {0, 1, encoding->layer(0, 1)}, reach)
          .contiguous();
  double within = 0, wrong = 0;
  for (int64_t h = 0; h < flags.heads; ++h) {
    const MatView<const double> map{maps.data_ptr<double>() + h * n * n, n, n, n, 1};
    within += variance_within_lags(map) / flags.heads;
    wrong += inversions(map) / flags.heads;
  }
  return fmt::format(
      "Over {} positions{}: {} of the variance lies within lags (0: the kernel is a "
      "function of the lag), {} of the pairs of keys stand against their distance (0: "
      "it only falls).",
      n, encoding->traits().stochastic ? ", in one draw" : "",
      report::short_number(within), report::short_number(wrong));
}

/// The kernel at lags 0, 1, 4, 16, ...
report::Table kernel_table(const report::Chart& chart) {
  report::Table table{"Kernel at some lags", {{"lag", "count"}}, {}};
  for (const report::Series& s : chart.series) table.columns.push_back({s.label});
  const auto& x = chart.series[0].x;
  const auto last = static_cast<int64_t>(x.back());
  for (int64_t lag = 0; lag < last; lag = lag == 0 ? 1 : lag * 4) {
    const auto i = size_t(std::ranges::lower_bound(x, double(lag + 1)) - x.begin());
    table.rows.push_back({x[i] - 1});
    for (const report::Series& s : chart.series) table.rows.back().push_back(s.y[i]);
  }
  return table;
}

/// The same for a terminal, with the spread.
std::string table_text(const report::Chart& chart, const report::Table& table) {
  std::string text;
  for (const report::Column& column : table.columns)
    text += fmt::format("{:>{}}", column.label, text.empty() ? 8 : 19);
  for (const auto& row : table.rows) {
    const double lag = row[0].number;
    text += fmt::format("\n{:>8}", lag);
    for (size_t i = 0; i + 1 < row.size(); ++i) {
      const report::Series& s = chart.series[i];
      std::string cell = report::short_number(row[i + 1].number);
      if (!s.low.empty()) {
        const auto at =
            size_t(std::lower_bound(s.x.begin(), s.x.end(), lag + 1) - s.x.begin());
        cell += " +- " + report::short_number(s.high[at] - s.y[at]);
      }
      text += fmt::format(" {:>18}", cell);
    }
  }
  return text + "\n";
}

report::Page kernel_page(const ShowEncodingFlags& flags, const std::string& note,
                         const std::vector<report::Chart>& charts) {
  report::Page page{flags.text, note, {}, {}, "Made by lagwise encodings show."};
  report::Section section;
  for (const report::Chart& chart : charts)
    section.blocks.push_back(report::Charts{{chart}, true});
  section.blocks.push_back(kernel_table(charts[0]));
  page.sections.push_back(section);
  return page;
}

void show_encoding(ShowEncodingFlags flags) {
  if (!flags.html.empty()) data::check_replaceable(flags.html);
  flags.text = text_shown(flags.text);
  const c10::InferenceMode no_graph;
  Progress progress("show");
  const int64_t reach = reach_of(flags);
  const Kernel kernel = shown_kernel(flags, flags.text, reach, progress);
  const std::string title = fmt::format(
      "{}: kernel by lag{}", flags.text,
      kernel.draws > 1 ? fmt::format(", mean of {} draws", kernel.draws) : "");
  std::vector<report::Chart> charts = {kernel_chart(title, kernel, flags.length)};
  if (kernel.draws > 1 && has_option(flags.text, "realizations"))
    charts.push_back(spread_chart(flags, progress));
  const std::string note = fmt::format(
      "The scores of queries and keys all equal to 1/sqrt(D), D = {}; without "
      "positions "
      "every one would be 1.",
      flags.dim);
  const std::string measured = measures(flags, reach);
  const report::Table table = kernel_table(charts[0]);
  if (!flags.html.empty())
    data::replace_file(flags.html,
                       page_html(kernel_page(flags, note + " " + measured, charts)));
  progress.clear();
  for (const report::Chart& chart : charts) fmt::print("{}\n", terminal_chart(chart));
  fmt::print("{}{}\n{}\n", table_text(charts[0], table), note, measured);
}

}  // namespace

void add_encodings_show(CLI::App& encodings) {
  CLI::App* verb = encodings.add_subcommand(
      "show", "Draw what an encoding makes of the lag, far beyond the training length");
  const auto flags = std::make_shared<ShowEncodingFlags>();
  verb->add_option("encoding", flags->text, "Its name and options, such as lrpe:p=dct")
      ->required();
  verb->add_option("--html", flags->html, "Write a self-contained page to this file")
      ->check(file_name());
  verb->add_option("--length", flags->length, "Mark this training length, 2 to 65536")
      ->check(whole_number(2, 65536))
      ->capture_default_str();
  verb->add_option("--heads", flags->heads, "Draw this many heads, 1 to 26")
      ->check(whole_number(1, 26))
      ->capture_default_str();
  verb->add_option("--dim", flags->dim, "Give each head this width, 1 to 1024")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  verb->add_option("--draws", flags->draws, "Draw noise this often, 2 to 10000")
      ->check(whole_number(2, 10000))
      ->capture_default_str();
  verb->add_option("--seed", flags->seed, "Draw from this seed, 0 to 1000000")
      ->check(whole_number(0, 1000000))
      ->capture_default_str();
  verb->callback([flags] { show_encoding(*flags); });
}

}  // namespace lagwise::cli
