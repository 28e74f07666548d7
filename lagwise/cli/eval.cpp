// `lagwise eval`: what a trained model is worth. The task's metric; for language models
// also the loss by position beside the restart line, or along one long stream; for masked
// models the pseudo-perplexity; for tasks whose examples have any length, the metric at
// each; for pairs what it answers; for music how like their sources continuations are.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/eval/continuations.h"
#include "lagwise/cli/eval/lengths.h"
#include "lagwise/cli/eval/text.h"
#include "lagwise/cli/run_flags.h"
#include "lagwise/cli/terminal/progress_line.h"
#include "lagwise/cli/terminal/stop_signal.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/errors.h"
#include "lagwise/core/machine.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/models/model.h"
#include "lagwise/runtime/model.h"
#include "lagwise/study/eval_files.h"
#include "lagwise/train/answers.h"
#include "lagwise/train/evaluation.h"
#include "lagwise/train/exported_loss.h"
#include "lagwise/train/past.h"
#include "lagwise/train/run_folder.h"

namespace lagwise::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTwinNeeded =
    "trained with a past, a model may be bad from an empty state, which lifts its own "
    "restart line: a gain counts\nagainst the lower of this line and that of a twin "
    "without a past, as lagwise compare --past \"0;...\" sets them side by side\n";

struct EvalFlags {
  RunFlags run;
  std::string split;
  std::string lengths = "1x,2x,4x,8x";
  int windows = 64, examples = 0, pseudo = 8;
  bool stream = false, json = false;
  std::string exported;
  int to = 65536, chunk = 1024;
  ContinuationFlags continuations;
};

/// One evaluation: finds, prints, writes.
class Eval {
 public:
  explicit Eval(const EvalFlags& flags)
      : flags_(flags),
        run_(open(flags.run)),
        split_(chosen_split()),
        data_hash_(data::hash_text(run_.task->hash())) {}

  void run() {
    const std::vector<int64_t> lengths = lengths_asked(flags_.lengths, trained());
    check_classes();
    say(fmt::format("{}, step {}\n", run_.folder, run_.step));
    if (!own_data())
      fmt::print(
          stderr,
          "{}: not the data {} was trained on (hash {}, not {}): results are kept "
          "apart from the run's own\n",
          run_.recipe.data.path, run_.folder, data_hash_,
          data::hash_text(run_.data_hash));
    if (!flags_.exported.empty()) {
      exported();
    } else if (flags_.continuations.count > 0) {
      continuations();
    } else if (flags_.stream) {
      stream();
    } else {
      metric();
      if (fills())
        pseudo();
      else if (!lengths.empty())
        run_.task->judged_by_length() ? metric_by_length(lengths) : positions(lengths);
    }
    progress_.clear();
    if (flags_.json) fmt::print("{}\n", all_.dump(2));
  }

 private:
  /// Labels of other data are judged by their names, not by their numbers.
  void check_classes() const {
    const std::vector<std::string> here = run_.task->class_names();
    if (run_.class_names.empty() || here == run_.class_names) return;
    throw DataError(
        run_.recipe.data.path, -1,
        fmt::format("the classes of {}: {}; got {}", run_.folder,
                    fmt::join(run_.class_names, ", "), fmt::join(here, ", ")));
  }

  int64_t trained() const { return run_.model->config().length; }
  bool fills() const { return model_row(run_.model->config().model).fills; }

  /// --split; else test, where there is one, else valid.
  std::string chosen_split() const {
    const std::string split = flags_.split.empty() ? "test" : flags_.split;
    try {
      run_.task->size(split);
      return split;
    } catch (const std::invalid_argument& error) {
      if (flags_.split.empty()) return "valid";
      throw std::invalid_argument("--split: " + std::string(error.what()));
    }
  }

  void say(const std::string& text) {
    progress_.clear();
    if (!flags_.json) fmt::print("{}", text);
  }

  std::function<void(double)> showing(const std::string& what) {
    return [this, what](double fraction) {
      if (StopSignal::asked()) throw Interrupted("stopped; nothing was written");
      progress_.show(what, fraction);
    };
  }

  bool own_data() const { return data_hash_ == data::hash_text(run_.data_hash); }

  /// `examples`: those of a metric that is not of all; 0: it is.
  void keep(const std::string& kind, Json json, int64_t examples = 0) {
    json["data"] = {{"path", run_.recipe.data.path}, {"hash", data_hash_}};
    all_[kind] = json;
    const EvalPart part{own_data() ? "" : data_hash_, examples};
    // Of what `lagwise compare` reads: that is then no longer what it had asked for.
    if (own_data() && kind != "stream" && kind != "continuations" && kind != "pseudo")
      std::filesystem::remove(run_file(run_.folder, "eval/compare.json"));
    const std::string file =
        write_eval(run_.folder, eval_name(kind, split_, part), json);
    say(fmt::format("-> {}\n\n", file));
  }

  /// A model that answers NaN has no loss to print or keep.
  void need_finite(double loss) {
    if (std::isfinite(loss)) return;
    progress_.clear();
    throw Diverged(
        fmt::format("the loss of {}, step {}, on {} is not finite: its weights are "
                    "not, or too large",
                    run_.folder, run_.step, split_));
  }

  void metric() {
    Evaluation found = evaluate(*run_.model, *run_.task, run_.draw(), split_,
                                flags_.examples, 16, showing(run_.task->metric()));
    need_finite(found.loss);
    const Answers answers = answers_of(found);
    say(metric_text(found) + answers_text(answers));
    const int64_t of_all = run_.task->size(split_);
    keep("metric", metric_json(found, run_.step, of_all),
         found.examples < of_all ? found.examples : 0);
  }

  /// What a model that listens writes, of tasks that know what it should; how good that
  /// is goes to the other figures.
  Answers answers_of(Evaluation& found) {
    if (!has_answers(*run_.task, *run_.model)) return {};
    Answers answers = write_answers(*run_.model, *run_.task, run_.draw(), split_,
                                    flags_.examples, 64, showing("answers"));
    found.more["exact match"] = answers.exact_match();
    found.more["chrF"] = answers.chrf();
    return answers;
  }

  /// The metric at each length that the task and the encoding's table have room for.
  void metric_by_length(const std::vector<int64_t>& lengths) {
    MetricByLength found{split_, run_.task->metric(), trained(), {}};
    for (const int64_t length : lengths) {
      try {
        found.lengths[length] =
            evaluate(*run_.model, *run_.task, run_.draw(), split_, flags_.examples, 16,
                     showing(fmt::format("{} at {}", found.metric, length)), length);
      } catch (const std::invalid_argument& refusal) {
        progress_.clear();
        fmt::print(stderr, "no examples of {} tokens: {}\n", length, refusal.what());
      }
    }
    for (const auto& [length, at] : found.lengths) need_finite(at.loss);
    if (found.lengths.empty()) return;
    say(lengths_text(found));
    const bool all = flags_.examples == 0 || flags_.examples >= run_.task->size(split_);
    keep("lengths", lengths_json(found, run_.step), all ? 0 : flags_.examples);
  }

  /// Windows of the longest length asked for that the split and the encoding's table
  /// have room for.
  void positions(std::vector<int64_t> lengths) {
    if (!model_row(run_.model->config().model).continues)
      return say("loss by position is for language models: left out\n");
    while (run_.task->size(split_, lengths.back()) < 1) {
      shorten(lengths, fmt::format("the split '{}' has no window so long", split_));
    }
    for (;;) {
      try {
        const LossByPosition found = loss_by_position(
            *run_.model, *run_.task, run_.draw(), split_, lengths.back(),
            flags_.windows, showing("loss by position"), lengths);
        for (const PositionLoss& span : found.spans) need_finite(span.loss);
        say(position_text(found));
        if (PastMultiples(run_.recipe.train.past).any()) say(kTwinNeeded);
        return keep("position", position_json(found, run_.step));
      } catch (const std::invalid_argument& refusal) {  // a table of the encoding's
        shorten(lengths, refusal.what());
      }
    }
  }

  /// Of masked models, in place of the loss by position.
  void pseudo() {
    if (flags_.pseudo == 0) return;
    const PseudoPerplexity found =
        pseudo_perplexity(*run_.model, *run_.task, run_.draw(), split_, flags_.pseudo,
                          showing("pseudo-perplexity"));
    need_finite(found.loss);
    say(pseudo_text(found));
    keep("pseudo", pseudo_json(found, run_.step));
  }

  void shorten(std::vector<int64_t>& lengths, const std::string& why) {
    progress_.clear();
    if (lengths.size() == 1)
      throw std::invalid_argument(
          fmt::format("no window of {} tokens: {}", lengths.back(), why));
    fmt::print(stderr, "no windows of {} tokens: {}\n", lengths.back(), why);
    lengths.pop_back();
  }

  void stream() {
    const LossAlongStream found =
        loss_along_stream(*run_.model, *run_.task, run_.draw(), split_, flags_.to,
                          flags_.chunk, showing("stream"));
    for (const StreamPoint& point : found.points) need_finite(point.loss);
    say(stream_text(found));
    // Single tokens time decoding, as `lagwise compare` does: no curve for a chart.
    keep(flags_.chunk == 1 ? "decode" : "stream", stream_json(found, run_.step));
  }

  /// The file of `lagwise export` beside the model it came from, on the same examples.
  void exported() {
    const auto small = runtime::Model::open(flags_.exported);
    if (small->plan().vocabulary != run_.model->config().vocabulary)
      throw std::invalid_argument(fmt::format(
          "--exported: expected a model of {} tokens, as {} has, got {} in {}",
          run_.model->config().vocabulary, run_.folder, small->plan().vocabulary,
          flags_.exported));
    small->set_threads(usable_cores());
    const Evaluation whole =
        evaluate(*run_.model, *run_.task, run_.draw(), split_, flags_.examples, 16,
                 showing(run_.task->metric()));
    const Evaluation found =
        evaluate([&](const Batch& batch) { return exported_loss(*small, batch); },
                 *run_.task, split_, flags_.examples, 16, showing(flags_.exported));
    need_finite(found.loss);
    all_["exported"] = {{"file", flags_.exported},
                        {"split", split_},
                        {"step", run_.step},
                        {"targets", found.targets},
                        {"loss", found.loss},
                        {"run_loss", whole.loss},
                        {"rise", found.loss - whole.loss}};
    say(fmt::format("{}: {} targets, {:.5f} nats a target; {} has {:.5f}, {:+.5f}\n",
                    split_, found.targets, whole.loss, flags_.exported, found.loss,
                    found.loss - whole.loss));
  }

  void continuations() {
    const ContinuationsFound found =
        find_continuations(run_, split_, flags_.continuations, showing("continuing"));
    say(continuations_text(found));
    keep("continuations", continuations_json(found, run_.step));
  }

  const EvalFlags& flags_;
  Run run_;
  std::string split_, data_hash_;
  ProgressLine progress_;
  StopSignal listening_;
  Json all_ = Json::object();
};

void add_eval(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("eval",
                                      "Judge a trained model: metric, loss by "
                                      "position, one long stream, continuations");
  const auto flags = std::make_shared<EvalFlags>();
  add_run_flags(*verb, flags->run);
  verb->add_option("--split", flags->split,
                   "On this split; test unless given, or valid where there is none");
  verb->add_option("--lengths", flags->lengths,
                   "Loss by position up to these lengths, in tokens or multiples of "
                   "the training length; none leaves it out")
      ->capture_default_str();
  verb->add_option("--windows", flags->windows,
                   "Average loss by position over so many windows")
      ->check(whole_number(1, kMostCount))
      ->capture_default_str();
  verb->add_option("--pseudo", flags->pseudo,
                   "Of masked models: pseudo-perplexity over so many windows, every "
                   "token hidden in turn; 0 leaves it out")
      ->check(whole_number(0, kMostCount))
      ->type_name("WINDOWS")
      ->capture_default_str();
  verb->add_option("--examples", flags->examples,
                   "Judge the metric on so many examples spread over the split; all "
                   "unless given")
      ->check(whole_number(1, kMostCount));
  CLI::Option* stream = verb->add_flag("--stream", flags->stream,
                                       "Instead: the split as one long stream with "
                                       "carried state, documents and pieces one "
                                       "after another; its loss, speed and memory");
  verb->add_option("--to", flags->to, "Length of the stream in tokens")
      ->check(whole_number(1, kMostCount))
      ->needs(stream)
      ->capture_default_str();
  verb->add_option("--chunk", flags->chunk, "Tokens of the stream taken at once")
      ->check(whole_number(1, kMostCount))
      ->needs(stream)
      ->capture_default_str();
  verb->add_option("--exported", flags->exported,
                   "Instead: the loss of this file of lagwise export beside the run's")
      ->check(CLI::ExistingFile)
      ->excludes(stream);
  add_continuation_flags(*verb, flags->continuations);
  verb->add_flag("--json", flags->json, "Print one JSON object instead of text");
  verb->callback([flags] { Eval(*flags).run(); });
}

const RegisterVerb eval_registered({.name = "eval", .place = 3, .add = add_eval});

}  // namespace
}  // namespace lagwise::cli
