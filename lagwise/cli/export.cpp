// `lagwise export`: a trained model as one file that runs without torch.

#include <fmt/format.h>

#include <filesystem>
#include <memory>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/machine.h"
#include "lagwise/cli/run_flags.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/machine.h"
#include "lagwise/train/exported_model.h"

namespace lagwise::cli {
namespace {

struct ExportFlags {
  RunFlags run;
  std::string out, weights = "f32";
};

void run_export(const ExportFlags& flags) {
  const Run run = open(flags.run, false);
  exported_run(run, runtime::weight_type(flags.weights)).write(flags.out);
  const auto model = runtime::Model::open(flags.out);
  fmt::print("{}: step {}, {} weights, {}; a state of {}\n", flags.out, run.step,
             flags.weights,
             human_bytes(static_cast<int64_t>(std::filesystem::file_size(flags.out))),
             human_bytes(static_cast<int64_t>(runtime::state_bytes(model->layout()))));
}

void add_export(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "export", "Write a trained model to one file that runs without torch");
  const auto flags = std::make_shared<ExportFlags>();
  add_run_flags(*verb, flags->run);
  verb->add_option("--out", flags->out, "The file to write, such as song.lagwise")
      ->required()
      ->check(file_name());
  verb->add_option("--weights", flags->weights,
                   "How weights are stored: f32, bf16 (half the bytes) or int8 (a "
                   "quarter, and a scale for every 64)")
      ->check(CLI::IsMember({"f32", "bf16", "int8"}))
      ->capture_default_str();
  verb->callback([flags] { run_export(*flags); });
}

const RegisterVerb export_registered({.name = "export", .place = 5, .add = add_export});

}  // namespace
}  // namespace lagwise::cli
