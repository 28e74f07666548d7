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
#include "lagwise/data/formats/mapped_places.h"
#include "lagwise/dist/lost_peer.h"
#include "lagwise/models/model.h"
#include "lagwise/train/arithmetic.h"
#include "lagwise/train/evaluation_mode.h"
#include "lagwise/train/first_nonfinite.h"
#include "lagwise/train/frozen.h"
#include "lagwise/train/memory_needed.h"
#include "lagwise/train/pretrained.h"
#include "lagwise/train/schedule.h"
#include "lagwise/train/threads.h"

namespace lagwise {
namespace {

constexpr int64_t kCompareEvery = 100;  // steps, after which parameters are compared

int64_t peak_bytes() {
  rusage usage = {};
  getrusage(RUSAGE_SELF, &usage);
  return int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace

Trainer::Trainer(const Recipe& recipe, const std::string& folder,
                 TrainerOptions options)
    : recipe_(recipe),
      options_(std::move(options)),
      team_(recipe.train, options_.peers, options_.columns),
      path_(folder),
      checkpoints_(folder, options_.calls) {
  if (team_.first() && !options_.fresh) check_same_recipe();
  check_names(recipe_.model);
  task_ = make_task(recipe_.data);
  state_.model = completed_model(recipe_, *task_);
  state_.words = task_->words();
  state_.tokenizer = task_->tokenizer();
  state_.class_names = task_->class_names();
  state_.data_hash = task_->hash();
  state_.arithmetic = arithmetic_here();
  has_valid_ = has_examples(*task_, "valid");
  team_.expect_same(state_.data_hash, "data (data.path)");
  team_.expect_same(data::fnv1a(data::bytes_of(recipe_text(recipe_))), "recipe");
  state_.threads = recipe_.train.threads > 0
                       ? recipe_.train.threads
                       : std::max<int64_t>(1, usable_cores() / options_.ranks_here);
  check_memory(recipe_, state_.model);
  model_ = make_model(state_.model);
  rehearse();
  optimiser_ = std::make_unique<AdamW>(trained_parameters(*model_));
  frozen_ = freeze(recipe_.train.freeze, optimiser_->parameters());
  gradients_ =
      std::make_unique<Gradients>(recipe_, team_, *task_, *model_, *optimiser_);
  if (team_.first()) {
    begin_from_another();
    folder_ = std::make_unique<RunFolder>(path_);
    if (options_.fresh) forget_run(path_);
    check_same_recipe();  // now that nobody else writes it
    resume();
  }
  share_state();
  pin_threads(state_.threads);
}

/// Everybody goes on from where rank 0 does.
void Trainer::share_state() {
  if (team_.alone()) return;
  std::string state = team_.first() ? state_text(state_) : "";
  team_.share(state);
  double done = team_.first() && finished() ? 1 : 0,
         saved = static_cast<double>(saved_);
  team_.share(done), team_.share(saved);
  done_ = done != 0, saved_ = static_cast<int64_t>(saved);
  if (!team_.first()) {
    const int64_t threads = state_.threads;
    state_ = parse_state("the state of rank 0", state);
    state_.threads = threads;
  }
  const c10::NoGradGuard no_graph;
  for (const auto& tensors : {optimiser_->parameters(), optimiser_->state()})
    for (const NamedTensor& one : tensors) {
      at::Tensor same = one.tensor.detach();
      team_.share_(same);
    }
}

/// One example, once, before anything is written: what cannot be computed at all (a
/// position beyond an encoding's table) is refused now.
void Trainer::rehearse() const {
  const c10::NoGradGuard no_graph;
  const EvaluationMode no_dropout(*model_);
  const Draw draw{recipe_.train.seed, 0};
  model_->loss(team_.part(task_->train_batch(0, 0, 1), state_.model.patch), draw);
  check_past(*model_, *task_, PastMultiples(recipe_.train.past), recipe_.data.length,
             draw);
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

/// Before the first step of a run that is fine-tuned. One that goes on has its own
/// checkpoint, and the other run may be gone by then.
void Trainer::begin_from_another() {
  const std::string& from = recipe_.train.from;
  if (from.empty() || (!options_.fresh && !checkpoints_.steps().empty())) return;
  state_.origin = take_weights(from, path_, state_, optimiser_->parameters());
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
  // Where processes may come and go, the machines of today say how many threads.
  if (recipe_.train.threads > 0 || recipe_.train.leaves > 1)
    saved.threads = state_.threads;
  saved.model = state_.model;
  arithmetic_change_ = arithmetic_change(saved.arithmetic, state_.arithmetic);
  saved.arithmetic = state_.arithmetic;
  state_ = std::move(saved);
  saved_ = state_.step;
}

bool Trainer::finished() const {
  if (!team_.first()) return done_;
  return state_.step >= recipe_.train.steps &&
         ended_at(run_file(path_, "metrics.jsonl"), state_.step);
}

void Trainer::describe() const {
  nlohmann::ordered_json json;
  for (const auto& [name, value] : options_.facts) json[name] = value;
  json["threads"] = state_.threads;
  if (!team_.alone()) json["ranks"] = team_.size(), json["hosts"] = options_.hosts;
  json["parameters"] = optimiser_->numbers();
  if (frozen_ > 0) json["frozen"] = frozen_;
  if (state_.origin)
    json["origin"] = nlohmann::ordered_json::parse(origin_text(*state_.origin));
  json["data_hash"] = data::hash_text(state_.data_hash);
  json["model"] = nlohmann::ordered_json::parse(model_config_text(state_.model));
  if (state_.model.grid.size() > 1) json["grid_seen"] = seen_grid(state_.model);
  data::replace_file(run_file(path_, "run.json"), json.dump(1) + "\n");
}

void Trainer::run(TrainListener& listener) {
  if (finished()) return;
  try {
    train_all(listener);
  } catch (const dist::LostPeer& lost) {
    throw dist::LostPeer(lost, lost.who() + " was lost at step " +
                                   std::to_string(state_.step + 1) + " (" + lost.why() +
                                   "); newest checkpoint " + newest_checkpoint() +
                                   "; the same command goes on");
  }
}

void Trainer::train_all(TrainListener& listener) {
  state_.recipe = recipe_text(recipe_);
  if (team_.first()) {
    data::replace_file(run_file(path_, "recipe.toml"), state_.recipe);
    describe();
    metrics_ = std::make_unique<Metrics>(run_file(path_, "metrics.jsonl"), state_.step,
                                         state_.judged);
  }
  listener.starts(state_.step, optimiser_->numbers(), state_.threads);
  say_what_is_odd(listener);
  if (team_.first()) {  // those newer than ours are damaged, and in the way
    std::vector<int64_t> whole = checkpoints_.steps();
    std::erase_if(whole, [&](int64_t step) { return step > state_.step; });
    checkpoints_.prune(whole);
  }
  model_->train();
  if (!state_.judged) {  // killed in the evaluation
    evaluate_now(listener);
    prune();
  }
  while (state_.step < recipe_.train.steps) {
    if (!train_step()) interrupt(listener);
    finish_step(listener);
  }
  if (!team_.first()) return;
  metrics_->add_end(state_.step, state_.seconds, peak_bytes());
  metrics_->sync();
}

void Trainer::say_what_is_odd(TrainListener& listener) const {
  for (const std::string& damage : passed_over_)
    listener.noted("passed over a damaged checkpoint: " + damage);
  if (!arithmetic_change_.empty())
    listener.noted("goes on with " + arithmetic_change_ +
                   ": last bits will differ from those of a run that did not change");
  if (state_.origin && state_.step == 0) listener.noted(origin_line(*state_.origin));
  if (frozen_ > 0)
    listener.noted("frozen: " + std::to_string(frozen_) + " of " +
                   std::to_string(optimiser_->numbers()) + " parameters");
  if (!has_valid_) listener.noted("the data has no split valid: nothing is evaluated");
}

bool Trainer::train_step() {
  const TrainConfig& config = recipe_.train;
  const auto begin = Clock::now();
  const StepGradient gradient = gradients_->gather(
      state_.step, options_.stop ? options_.stop : [] { return false; });
  if (gradient.stop) return false;
  if (!gradient.wrong.empty()) diverge(gradient.wrong, gradient.where);
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
  if (state_.step % kCompareEvery == 0) check_parameters();
  listener.stepped(line_);
  if (due(config.log_every)) write_line(listener);
  state_.judged = !(has_valid_ && due(config.eval_every));
  if (!state_.judged || due(config.checkpoint_every)) {
    save(listener);
    if (!state_.judged) evaluate_now(listener);
    prune();
  }
  if (team_.alone() && stopped() && !last) interrupt(listener);
}

/// Those who do the same steps must have the same numbers. Where they do not, machines
/// compute differently, or memory is broken.
void Trainer::check_parameters() const {
  if (team_.alone()) return;
  uint64_t hash = data::kFnv1aStart;
  for (const auto& [name, tensor] : optimiser_->parameters())
    hash = data::fnv1a(
        {static_cast<const uint8_t*>(tensor.data_ptr()), tensor.nbytes()}, hash);
  team_.expect_same(hash,
                    "set of parameters after step " + std::to_string(state_.step));
}

void Trainer::write_line(TrainListener& listener) {
  if (team_.first()) metrics_->add(line_);
  state_.pending = {};
  listener.logged(line_);
}

/// Of the step that was just saved.
void Trainer::evaluate_now(TrainListener& listener) {
  const Evaluation found = evaluate(
      *model_, *task_, {recipe_.train.seed, state_.step}, "valid",
      recipe_.train.eval_examples, recipe_.train.batch,
      [&](double fraction) { listener.evaluating(fraction); }, 0, &team_);
  if (!std::isfinite(found.loss)) {
    if (team_.first()) {
      std::vector<int64_t> good = checkpoints_.steps();
      std::erase(good, state_.step);
      checkpoints_.prune(good);
    }
    diverge("the loss on the split valid", nonfinite_among(optimiser_->parameters()));
  }
  const bool better =
      !state_.best || (task_->higher_is_better() ? found.value > state_.best->value
                                                 : found.value < state_.best->value);
  if (better) state_.best = {state_.step, found.value};
  state_.judged = true;
  if (team_.first()) {
    metrics_->add(state_.step, found);
    metrics_->sync();
    checkpoints_.update(state_);
  }
  listener.evaluated(state_.step, found, better);
}

void Trainer::save(TrainListener& listener) {
  const std::string bad = nonfinite_among(optimiser_->parameters());
  if (!bad.empty()) diverge("a parameter", "in " + bad);
  saved_ = state_.step;
  if (!team_.first()) return;
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
  for (const std::string& file : data::MappedPlaces::changed())
    if (changed_.insert(file).second)
      listener.noted(file +
                     " was written to while it is trained on: the run no longer "
                     "is what the data and the recipe make of it");
}

/// All but the newest and the best go.
void Trainer::prune() {
  const std::vector<int64_t> steps = checkpoints_.steps();
  if (steps.empty() || !team_.first()) return;
  std::vector<int64_t> keep = {steps.back()};
  if (state_.best) keep.push_back(state_.best->step);
  checkpoints_.prune(keep);
}

void Trainer::diverge(const std::string& what, const std::string& where) const {
  try {
    if (team_.first())
      metrics_->add_divergence(state_.step + 1, what + " is not finite");
  } catch (const std::runtime_error&) {  // a full disk: what follows matters more
  }
  throw Diverged(what + " is not finite at step " + std::to_string(state_.step + 1) +
                 (where.empty() ? "" : ", first " + where) +
                 "; last good checkpoint: " + newest_checkpoint() +
                 "; a smaller train.lr or train.clip may help");
}

std::string Trainer::newest_checkpoint() const {
  int64_t newest = saved_;
  if (team_.first()) {
    const std::vector<int64_t> steps = checkpoints_.steps();
    newest = steps.empty() ? -1 : steps.back();
  }
  return newest < 0 ? "none" : checkpoints_.folder(newest);
}

void Trainer::interrupt(TrainListener& listener) {
  if (state_.step == 0) throw Interrupted("stopped before the first step was done");
  save(listener);
  prune();
  throw Interrupted("stopped and saved at step " + std::to_string(state_.step) +
                    " in " + path_ + "; the same command goes on from there");
}

}  // namespace lagwise
