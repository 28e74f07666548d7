#include "lagwise/train/trainer.h"

#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>
#include <sys/resource.h>

#include <chrono>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lagwise/core/clock.h"
#include "lagwise/core/errors.h"
#include "lagwise/core/machine.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/models/model.h"
#include "lagwise/ops/precision.h"
#include "lagwise/ops/recompute.h"
#include "lagwise/train/evaluation_mode.h"
#include "lagwise/train/first_nonfinite.h"
#include "lagwise/train/memory_needed.h"
#include "lagwise/train/schedule.h"
#include "lagwise/train/threads.h"

namespace lagwise {
namespace {

/// Real tokens, those of the source too. `patch` numbers of a picture are one token.
int64_t tokens_of(const Batch& batch, int64_t patch) {
  const auto count = [](const at::Tensor& tokens, const at::Tensor& lengths) {
    if (!tokens.defined()) return int64_t{0};
    return lengths.defined() ? lengths.sum().item<int64_t>() : tokens.numel();
  };
  return (count(batch.tokens, batch.lengths) +
          count(batch.source, batch.source_lengths)) /
         patch;
}

int64_t peak_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace

Trainer::Trainer(const Recipe& recipe, const std::string& folder,
                 TrainerOptions options)
    : recipe_(recipe),
      past_(recipe.train.past),
      options_(std::move(options)),
      path_(folder),
      checkpoints_(folder, options_.calls) {
  if (!options_.fresh) check_same_recipe();
  task_ = make_task(recipe_.data);
  state_.model = completed_model(recipe_, *task_);
  state_.words = task_->words();
  state_.tokenizer = task_->tokenizer();
  state_.class_names = task_->class_names();
  state_.data_hash = task_->hash();
  has_valid_ = has_examples(*task_, "valid");
  state_.threads = recipe_.train.threads > 0 ? recipe_.train.threads : usable_cores();
  check_memory(recipe_, state_.model);
  model_ = make_model(state_.model);
  rehearse();
  optimiser_ = std::make_unique<AdamW>(trained_parameters(*model_));
  folder_ = std::make_unique<RunFolder>(path_);
  if (options_.fresh) forget_run(path_);
  check_same_recipe();  // now that nobody else writes it
  resume();
  pin_threads(state_.threads);
}

/// One example, once, before anything is written: what cannot be computed at all (a
/// position beyond an encoding's table) is refused now.
void Trainer::rehearse() const {
  const c10::NoGradGuard no_graph;
  const EvaluationMode no_dropout(*model_);
  const Draw draw{recipe_.train.seed, 0};
  model_->loss(task_->train_batch(0, 0, 1), draw);
  check_past(*model_, *task_, past_, recipe_.data.length, draw);
}

void Trainer::check_same_recipe() const {
  const std::string file = run_file(path_, "recipe.toml");
  if (!std::filesystem::exists(file)) return;
  if (checkpoints_.steps().empty()) return;  // nothing would be lost
  const std::vector<std::string> changes =
      forbidden_changes(read_kept_recipe(file), recipe_);
  if (changes.empty()) return;
  std::string list;
  for (const std::string& change : changes) list += (list.empty() ? "" : "; ") + change;
  throw std::invalid_argument("a run with another recipe is in " + path_ + ": " + list +
                              " (--out names another folder, --fresh begins anew)");
}

void Trainer::resume() {
  std::vector<int64_t> steps = checkpoints_.steps();
  std::optional<DataError> newest;
  for (; !steps.empty(); steps.pop_back()) {
    const std::optional<DataError> damage = checkpoints_.damage(steps.back());
    if (!damage) break;
    if (!newest) newest = damage;
    passed_over_.emplace_back(damage->what());
  }
  if (steps.empty() && newest) throw DataError(*newest);
  if (steps.empty()) return;
  TrainerState saved = checkpoints_.read_state(steps.back());
  if (saved.data_hash != state_.data_hash || saved.words != state_.words)
    throw DataError(path_, -1,
                    "the data the run began with, hash " +
                        data::hash_text(saved.data_hash) + ", but data.path now has " +
                        data::hash_text(state_.data_hash));
  checkpoints_.read_model(saved.step, optimiser_->parameters());
  checkpoints_.read_optimiser(saved.step, *optimiser_);
  if (recipe_.train.threads > 0) saved.threads = recipe_.train.threads;
  saved.model = state_.model;
  state_ = std::move(saved);
}

bool Trainer::finished() const {
  return state_.step >= recipe_.train.steps &&
         ended_at(run_file(path_, "metrics.jsonl"), state_.step);
}

void Trainer::describe() const {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : options_.facts) json[name] = value;
  json["threads"] = state_.threads;
  json["parameters"] = optimiser_->numbers();
  json["data_hash"] = data::hash_text(state_.data_hash);
  json["model"] = nlohmann::ordered_json::parse(model_config_text(state_.model));
  data::replace_file(run_file(path_, "run.json"), json.dump(1) + "\n");
}

void Trainer::run(TrainListener& listener) {
  if (finished()) return;
  state_.recipe = recipe_text(recipe_);
  data::replace_file(run_file(path_, "recipe.toml"), state_.recipe);
  describe();
  metrics_ = std::make_unique<Metrics>(run_file(path_, "metrics.jsonl"), state_.step,
                                       state_.judged);
  listener.starts(state_.step, optimiser_->numbers(), state_.threads);
  say_what_is_odd(listener);
  // Those newer than ours are damaged, and in the way.
  std::vector<int64_t> whole = checkpoints_.steps();
  std::erase_if(whole, [&](int64_t step) { return step > state_.step; });
  checkpoints_.prune(whole);
  model_->train();
  if (!state_.judged) {  // killed in the evaluation
    evaluate_now(listener);
    prune();
  }
  while (state_.step < recipe_.train.steps) {
    if (!train_step()) interrupt(listener);
    finish_step(listener);
  }
  metrics_->add_end(state_.step, state_.seconds, peak_bytes());
  metrics_->sync();
}

void Trainer::say_what_is_odd(TrainListener& listener) const {
  for (const std::string& damage : passed_over_)
    listener.noted("passed over a damaged checkpoint: " + damage);
  if (!has_valid_) listener.noted("the data has no split valid: nothing is evaluated");
}

/// The batch of a micro-step, with `past` tokens before each of its windows.
Batch Trainer::next_batch(const Draw& draw, int64_t past) const {
  if (past == 0)
    return task_->train_batch(draw.step, draw.micro_step, recipe_.train.batch);
  return task_->train_windows(draw.step, draw.micro_step, recipe_.train.batch,
                              past + recipe_.data.length);
}

/// The loss that is trained on, in the precision of the recipe. Evaluation is in f32.
Loss Trainer::loss_of(const Batch& batch, int64_t past, const Draw& draw) const {
  const ops::WithPrecision here(
      recipe_.train.precision == "bf16" ? ops::Precision::bf16 : ops::Precision::full);
  const ops::WithRecompute less(recipe_.train.recompute);
  return past == 0 ? model_->loss(batch, draw)
                   : loss_after_past(*model_, batch, recipe_.data.length, draw);
}

/// The gradients of the sum of losses over all micro-steps.
bool Trainer::gather(Gradient& gradient) {
  optimiser_->forget_gradients();
  Draw draw{recipe_.train.seed, state_.step};
  Batch batch;
  const auto check = [&](double number, const char* what) {
    if (!std::isfinite(number)) diverge(what, first_nonfinite(*model_, batch, draw));
  };
  for (; draw.micro_step < recipe_.train.accumulate; ++draw.micro_step) {
    if (stopped()) return false;
    const int64_t past = past_.multiple(draw) * recipe_.data.length;
    batch = next_batch(draw, past);
    const Loss loss = loss_of(batch, past, draw);
    gradient.loss += loss.sum.item<double>();
    check(gradient.loss, "the loss");
    loss.sum.backward();
    gradient.targets += loss.count;
    const int64_t read = past * batch.tokens.size(0);
    gradient.read += read;
    gradient.tokens += tokens_of(batch, state_.model.patch) - read;
  }
  gradient.targets = std::max<int64_t>(gradient.targets, 1);
  gradient.norm = optimiser_->gradient_norm() / static_cast<double>(gradient.targets);
  check(gradient.norm, "the gradient");
  return true;
}

bool Trainer::train_step() {
  const TrainConfig& config = recipe_.train;
  const auto begin = Clock::now();
  Gradient gradient;
  if (!gather(gradient)) return false;
  // The mean over targets, and the clip, as one factor.
  const bool clip = config.clip > 0 && gradient.norm > config.clip;
  const double scale = (clip ? config.clip / gradient.norm : 1.0) /
                       static_cast<double>(gradient.targets);
  const double lr = learning_rate(config, state_.step + 1);
  optimiser_->update(config, state_.step + 1, lr, scale);

  const double seconds = seconds_since(begin);
  ++state_.step;
  state_.tokens += gradient.tokens;
  state_.tokens_read += gradient.read;
  state_.seconds += seconds;
  TrainerState::Pending& pending = state_.pending;
  pending.loss += gradient.loss;
  pending.targets += gradient.targets;
  pending.tokens += gradient.tokens;
  pending.seconds += seconds;
  line_ = {.step = state_.step,
           .loss = pending.loss / static_cast<double>(pending.targets),
           .lr = lr,
           .grad_norm = gradient.norm,
           .tokens = state_.tokens,
           .tokens_read = state_.tokens_read,
           .tokens_per_second = static_cast<double>(pending.tokens) / pending.seconds,
           .seconds = state_.seconds};
  return true;
}

void Trainer::finish_step(TrainListener& listener) {
  const TrainConfig& config = recipe_.train;
  const bool last = state_.step == config.steps;
  const auto due = [&](int64_t every) {
    return last || (every > 0 && state_.step % every == 0);
  };
  listener.stepped(line_);
  if (due(config.log_every)) write_line(listener);
  state_.judged = !(has_valid_ && due(config.eval_every));
  if (!state_.judged || due(config.checkpoint_every)) {
    save(listener);
    if (!state_.judged) evaluate_now(listener);
    prune();
  }
  if (stopped() && !last) interrupt(listener);
}

void Trainer::write_line(TrainListener& listener) {
  metrics_->add(line_);
  state_.pending = {};
  listener.logged(line_);
}

/// Of the step that was just saved.
void Trainer::evaluate_now(TrainListener& listener) {
  const Evaluation found =
      evaluate(*model_, *task_, {recipe_.train.seed, state_.step}, "valid",
               recipe_.train.eval_examples, recipe_.train.batch,
               [&](double fraction) { listener.evaluating(fraction); });
  if (!std::isfinite(found.loss)) {
    std::vector<int64_t> good = checkpoints_.steps();
    std::erase(good, state_.step);
    checkpoints_.prune(good);
    diverge("the loss on the split valid", nonfinite_among(optimiser_->parameters()));
  }
  const bool better =
      !state_.best || (task_->higher_is_better() ? found.value > state_.best->value
                                                 : found.value < state_.best->value);
  if (better) state_.best = {state_.step, found.value};
  metrics_->add(state_.step, found);
  metrics_->sync();
  state_.judged = true;
  checkpoints_.update(state_);
  listener.evaluated(state_.step, found, better);
}

void Trainer::save(TrainListener& listener) {
  const std::string bad = nonfinite_among(optimiser_->parameters());
  if (!bad.empty()) diverge("a parameter", "in " + bad);
  metrics_->sync();
  const std::vector<int64_t> before = checkpoints_.steps();
  try {
    checkpoints_.save(state_, *optimiser_);
  } catch (const std::runtime_error& error) {
    const std::string kept = before.empty()
                                 ? "there is no checkpoint yet"
                                 : checkpoints_.folder(before.back()) + " still stands";
    throw std::runtime_error(std::string(error.what()) + "; " + kept);
  }
  listener.saved(state_.step, checkpoints_.folder(state_.step));
}

/// All but the newest and the best go.
void Trainer::prune() {
  const std::vector<int64_t> steps = checkpoints_.steps();
  if (steps.empty()) return;
  std::vector<int64_t> keep = {steps.back()};
  if (state_.best) keep.push_back(state_.best->step);
  checkpoints_.prune(keep);
}

void Trainer::diverge(const std::string& what, const std::string& where) const {
  try {
    metrics_->add_divergence(state_.step + 1, what + " is not finite");
  } catch (const std::runtime_error&) {  // a full disk: what follows matters more
  }
  const std::vector<int64_t> steps = checkpoints_.steps();
  throw Diverged(what + " is not finite at step " + std::to_string(state_.step + 1) +
                 (where.empty() ? "" : ", first " + where) +
                 "; last good checkpoint: " +
                 (steps.empty() ? "none" : checkpoints_.folder(steps.back())) +
                 "; a smaller train.lr or train.clip may help");
}

void Trainer::interrupt(TrainListener& listener) {
  if (state_.step == 0) throw Interrupted("stopped before the first step was done");
  save(listener);
  prune();
  throw Interrupted("stopped and saved at step " + std::to_string(state_.step) +
                    " in " + path_ + "; the same command goes on from there");
}

}  // namespace lagwise
