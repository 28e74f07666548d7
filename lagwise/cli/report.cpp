// `lagwise report`: runs on one page.

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/machine.h"
#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/data/formats/mapped_file.h"
#include "lagwise/study/report/page.h"

namespace lagwise::cli {
namespace {

struct ReportFlags {
  std::vector<std::string> runs;
  std::string out = "report.html", title;
  std::string play_on, model, module;
};

std::string bytes_of_file(const std::string& file) {
  const data::MappedFile mapped(file);
  return {reinterpret_cast<const char*>(mapped.bytes().data()), mapped.bytes().size()};
}

/// The name, on the page, of the run that plays on; "" where none is asked to.
std::string name_of_player(const ReportFlags& flags,
                           const std::vector<RunRecord>& runs) {
  if (flags.play_on.empty()) return "";
  std::error_code ignored;
  for (const RunRecord& run : runs)
    if (std::filesystem::equivalent(run.files.folder, flags.play_on, ignored))
      return run.name;
  throw std::invalid_argument("--play-on: expected one of the runs on the page, got '" +
                              flags.play_on + "'");
}

/// The module may be missing: the page then says what it takes.
report::PlayOn play_on_of(const ReportFlags& flags, const std::string& run) {
  const bool built = !flags.module.empty() && std::filesystem::exists(flags.module);
  return {run, built ? bytes_of_file(flags.module) : "", bytes_of_file(flags.model)};
}

void write_report(const ReportFlags& flags) {
  data::check_replaceable(flags.out);
  std::vector<std::string> left_out;
  const std::vector<RunRecord> runs = read_runs(flags.runs, left_out);
  for (const RunRecord& run : runs)
    for (const std::string& file : run.files.damaged)
      left_out.push_back(file + ": expected a JSON object, as lagwise writes it");
  for (const std::string& what : left_out) fmt::print(stderr, "left out: {}\n", what);
  const std::string player = name_of_player(flags, runs);
  report::Page page = report_page(runs, player);
  if (!player.empty()) page.play_on = play_on_of(flags, player);
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
  CLI::Option* play_on = verb->add_option(
      "--play-on", flags->play_on,
      "Let the model of this run go on from its samples of music, in the page itself");
  play_on->needs(
      verb->add_option("--model", flags->model,
                       "Its model, as lagwise export wrote it: int8 is small")
          ->check(file_name())
          ->needs(play_on));
  verb->add_option(
          "--module", flags->module,
          "The WebAssembly module that runs it, lagwise.wasm; where the file is "
          "missing the page says how to come by it")
      ->needs(play_on);
  verb->callback([flags] { write_report(*flags); });
}

const RegisterVerb report_registered({.name = "report", .place = 6, .add = add_report});

}  // namespace
}  // namespace lagwise::cli
