// `lagwise report`: runs on one page.

#include <fmt/format.h>

#include <memory>
#include <string>
#include <vector>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/machine.h"
#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/study/report/page.h"

namespace lagwise::cli {
namespace {

struct ReportFlags {
  std::vector<std::string> runs;
  std::string out = "report.html", title;
};

void write_report(const ReportFlags& flags) {
  data::check_replaceable(flags.out);
  std::vector<std::string> left_out;
  const std::vector<RunRecord> runs = read_runs(flags.runs, left_out);
  for (const RunRecord& run : runs)
    for (const std::string& file : run.files.damaged)
      left_out.push_back(file + ": expected a JSON object, as lagwise writes it");
  for (const std::string& what : left_out) fmt::print(stderr, "left out: {}\n", what);
  report::Page page = report_page(runs);
  if (!flags.title.empty()) page.title = flags.title;
  const std::string html = page_html(page);
  data::replace_file(flags.out, html);
  fmt::print("{}: {} {}, {}\n", flags.out, runs.size(),
             runs.size() == 1 ? "run" : "runs", human_bytes(std::ssize(html)));
}

void add_report(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "report", "Show runs on one self-contained page: curves, tables, samples");
  const auto flags = std::make_shared<ReportFlags>();
  verb->add_option("runs", flags->runs,
                   "Folders of runs, or folders with runs below them")
      ->required();
  verb->add_option("--out", flags->out, "Write the page to this file")
      ->check(file_name())
      ->capture_default_str();
  verb->add_option("--title", flags->title, "Give the page this title");
  verb->callback([flags] { write_report(*flags); });
}

const RegisterVerb report_registered({.name = "report", .place = 6, .add = add_report});

}  // namespace
}  // namespace lagwise::cli
