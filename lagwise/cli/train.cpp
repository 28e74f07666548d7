// `lagwise train`: from a recipe to a trained model, in a folder of its own.

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "lagwise/cli/blas_core.h"
#include "lagwise/cli/checks.h"
#include "lagwise/cli/job.h"
#include "lagwise/cli/machine.h"
#include "lagwise/cli/terminal/stop_signal.h"
#include "lagwise/cli/train_progress.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/machine.h"
#include "lagwise/ops/torch/blas_threads.h"
#include "lagwise/study/versions.h"
#include "lagwise/train/recipe_fields.h"
#include "lagwise/train/trainer.h"

namespace lagwise::cli {
namespace {

struct TrainFlags {
  std::string recipe, out;
  std::vector<std::string> set;
  double timeout = 0;
  bool fresh = false, keys = false;
};

void print_keys() {
  const Recipe defaults;
  for (const RecipeField& field : recipe_fields())
    fmt::print("{:<24} {:<20} {} ({})\n", field.key, toml_value(field.get(defaults)),
               field.help, field.expected());
}

/// Shows training, and tells the job how long steps take.
class JobProgress : public TrainProgress {
 public:
  JobProgress(const Job& job, const Recipe& recipe, std::FILE* out)
      : TrainProgress(recipe.train.steps, isatty(STDERR_FILENO) == 1 && job.first(),
                      out),
        job_(job) {}

  void stepped(const TrainingLine& line) override {
    job_.step_took(line.seconds - seconds_);
    seconds_ = line.seconds;
    TrainProgress::stepped(line);
  }

 private:
  const Job& job_;
  double seconds_ = 0;
};

using OpenFile = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// Of ranks other than 0, which speaks for all.
OpenFile open_rank_log(const std::string& run, int rank) {
  const std::string log = rank_log(run, rank);
  OpenFile file(std::fopen(log.c_str(), "a"), &std::fclose);
  if (!file) throw std::runtime_error("cannot write " + log);
  return file;
}

void run_train(const TrainFlags& flags) {
  if (flags.keys) return print_keys();
  if (flags.recipe.empty())
    throw std::invalid_argument(
        "lagwise train needs a recipe, such as recipes/listops.toml");
  Recipe recipe = read_recipe(flags.recipe, flags.set);
  const std::string folder =
      flags.out.empty() ? default_run_folder(flags.recipe) : flags.out;
  keep_freed_memory();

  Job job(flags.timeout);
  const StopSignal listening(true);
  TrainerOptions options;
  options.stop = StopSignal::asked, options.fresh = flags.fresh;
  const std::vector<std::string> simd = usable_simd();
  options.facts = {
      {"lagwise", lagwise_version()}, {"torch", torch_version()},
      {"highway", highway_version()}, {"compiler", compiler_version()},
      {"cpu", cpu_model()},           {"simd", simd.empty() ? "" : simd.front()},
      {"blas", ops::blas_name()}};
  job.join(recipe, options);
  if (const std::string warning = blas_warning(blas_core(), this_cpu());
      !warning.empty())
    fmt::print(stderr, "lagwise: {}\n", warning);
  if (job.first())
    recipe.data.tell = [](const std::string& line) { fmt::print("{}\n", line); };
  Trainer trainer(recipe, folder, options);
  if (trainer.finished()) {
    if (!job.first()) return;
    fmt::print("{} is finished: {} steps (--fresh begins anew)\n", folder,
               trainer.step());
    return;
  }
  const int64_t begun = trainer.step(), sent = job.bytes_sent();  // to begin with
  {
    const OpenFile log = job.first() ? OpenFile(nullptr, &std::fclose)
                                     : open_rank_log(folder, job.rank());
    JobProgress progress(job, recipe, log ? log.get() : stdout);
    trainer.run(progress);
  }
  if (!job.first()) return;
  if (!job.alone())
    fmt::print(
        "rank 0 sent {} bytes a step\n",
        (job.bytes_sent() - sent) / std::max<int64_t>(1, trainer.step() - begun));
  fmt::print("done: {}\n", folder);
}

void add_train(CLI::App& app) {
  CLI::App* verb = app.add_subcommand(
      "train", "Train a model as a recipe says; the same command again goes on");
  const auto flags = std::make_shared<TrainFlags>();
  verb->add_option("RECIPE", flags->recipe,
                   "A TOML file, such as recipes/listops.toml");
  verb->add_option("--set", flags->set,
                   "Put a value over the recipe's, such as train.steps=100; any number "
                   "of times")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  verb->add_option("--out", flags->out,
                   "The run's folder; runs/ and the recipe's name unless given")
      ->check(file_name());
  verb->add_option("--timeout", flags->timeout,
                   "With several processes: the seconds of silence after which one "
                   "counts as lost; 60 unless given")
      ->check(CLI::PositiveNumber);
  verb->add_flag("--fresh", flags->fresh, "Forget what a run left in the folder");
  verb->add_flag("--keys", flags->keys,
                 "Print every key of a recipe with its default and meaning");
  verb->callback([flags] { run_train(*flags); });
}

const RegisterVerb train_registered({.name = "train", .place = 2, .add = add_train});

}  // namespace
}  // namespace lagwise::cli
