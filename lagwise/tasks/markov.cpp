// The next symbol of a Markov chain that nobody has seen before. Every sequence has a
// transition matrix P of its own over V symbols, each row drawn from Dirichlet(1), that
// is, uniformly from all distributions: whatever is to be known about P has to be read
// from the sequence, so that a longer past always helps.
//
// The best predictor is known. After n(x, y) steps from x to y the posterior of row x is
// Dirichlet(1 + n(x, .)), whose mean is the prediction
//
//     p(y | x) = (n(x, y) + 1) / (n(x) + V)          with n(x) = sum over y of n(x, y)
//
// and one who knows P itself loses -ln P(x, y).
//
// A step of such a chain tells little (0.4 nats in all lie between knowing nothing and
// knowing P), so little that training may stay at ln V for thousands of steps. With
// `sharpen` = s > 1 the rows of a training chain are raised to a power between 1 and s,
// drawn for each chain, and made to sum to 1 again: among chains that are nearly certain
// the way is found within a few hundred steps, and it serves the others too. What a
// model is judged by (valid and test) is never sharpened.

#include <ATen/ops/empty.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "lagwise/tasks/draws.h"
#include "lagwise/tasks/made_sequences.h"

namespace lagwise {
namespace {

constexpr const char* kMarkovTask = "markov";

/// The rows of a transition matrix, summed up along each: cumulative(x)[y] is the
/// probability of a step from x to a symbol up to y.
class TransitionMatrix {
 public:
  /// Exponential numbers divided by their sum are uniform among all distributions;
  /// raised to a power first, they are nearer to certainty.
  TransitionMatrix(int64_t symbols, data::Dice& dice, double power = 1)
      : symbols_(symbols), cumulative_(static_cast<size_t>(symbols * symbols)) {
    for (int64_t x = 0; x < symbols; ++x) {
      double* row = cumulative_.data() + x * symbols;
      double sum = 0;
      for (int64_t y = 0; y < symbols; ++y) {
        const double number = -std::log(dice.roll());
        row[y] = sum += power == 1 ? number : std::pow(number, power);
      }
      for (int64_t y = 0; y < symbols; ++y) row[y] /= sum;
    }
  }

  int64_t step(int64_t x, double chance) const {
    const double* row = cumulative_.data() + x * symbols_;
    return std::min(symbols_ - 1, std::lower_bound(row, row + symbols_, chance) - row);
  }

  double probability(int64_t x, int64_t y) const {
    const double* row = cumulative_.data() + x * symbols_;
    return row[y] - (y > 0 ? row[y - 1] : 0);
  }

 private:
  int64_t symbols_;
  std::vector<double> cumulative_;
};

class Markov : public MadeSequences {
 public:
  Markov(const TaskConfig& config, int64_t symbols, double sharpen, Spec& options)
      : MadeSequences(config, options), symbols_(symbols), sharpen_(sharpen) {}

  std::string metric() const override { return "nats per token"; }
  double value(const Loss& total) const override {
    return total.sum.item<double>() /
           static_cast<double>(std::max<int64_t>(total.count, 1));
  }

  std::optional<double> guess(const std::string&) const override {
    return std::log(static_cast<double>(symbols_));
  }

  Batch train_windows(int64_t step, int64_t micro_step, Rows rows,
                      int64_t length) const override {
    return made_batch(step, micro_step, rows, length);
  }

  /// The first chain of the split, which has no end.
  std::vector<int64_t> stream(const std::string& split, int64_t first,
                              int64_t count) const override {
    if (first < 0 || count < 0)
      throw std::invalid_argument("markov: expected a place and a count of 0 or more");
    const auto walked = make(example_dice(split, 0), first + count).tokens;
    return {walked.begin() + first, walked.end()};
  }

  std::optional<IdealLosses> ideal(const std::string& split, int64_t begin, int64_t end,
                                   int64_t length) const override {
    check_range(split, begin, end);
    const int64_t n = window(length);
    IdealLosses losses{at::empty({end - begin, n}, at::kDouble),
                       at::empty({end - begin, n}, at::kDouble)};
    for (int64_t i = begin; i < end; ++i) {
      data::Dice dice = example_dice(split, i);
      const TransitionMatrix matrix(symbols_, dice);
      judge(make(example_dice(split, i), n), matrix,
            losses.best.data_ptr<double>() + (i - begin) * n,
            losses.source.data_ptr<double>() + (i - begin) * n);
    }
    return losses;
  }

 protected:
  int64_t vocabulary() const override { return symbols_; }

  MadeSequence make(data::Dice dice, int64_t length) const override {
    const TransitionMatrix matrix(symbols_, dice);
    return walk(matrix, dice, length);
  }

  MadeSequence make_for_training(data::Dice dice, int64_t length) const override {
    if (sharpen_ == 1) return make(dice, length);
    const double power = 1 + (sharpen_ - 1) * dice.roll();
    const TransitionMatrix matrix(symbols_, dice, power);
    return walk(matrix, dice, length);
  }

 private:
  MadeSequence walk(const TransitionMatrix& matrix, data::Dice& dice,
                    int64_t length) const {
    int64_t symbol = pick(dice, symbols_);
    MadeSequence made;
    for (int64_t i = 0; i < length; ++i) {
      made.tokens.push_back(symbol);
      symbol = matrix.step(symbol, dice.roll());
      made.targets.push_back(symbol);
    }
    return made;
  }

  /// The losses of both who predict, along one sequence.
  void judge(const MadeSequence& walk, const TransitionMatrix& matrix, double* best,
             double* source) const {
    const auto v = static_cast<size_t>(symbols_);
    std::vector<double> steps(v * v, 0), visits(v, 0);
    for (size_t i = 0; i < walk.tokens.size(); ++i) {
      const auto x = static_cast<size_t>(walk.tokens[i]);
      const auto y = static_cast<size_t>(walk.targets[i]);
      best[i] = -std::log((steps[x * v + y] + 1) /
                          (visits[x] + static_cast<double>(symbols_)));
      source[i] = -std::log(matrix.probability(walk.tokens[i], walk.targets[i]));
      ++steps[x * v + y], ++visits[x];
    }
  }

  int64_t symbols_;
  double sharpen_;
};

std::unique_ptr<Task> make_markov(const TaskConfig& config, Spec& options) {
  const int64_t symbols = options.take("symbols", 16);
  if (symbols < 2 || symbols > 1024)
    throw std::invalid_argument("markov: symbols: expected 2 to 1024, got " +
                                std::to_string(symbols));
  const double sharpen = options.take("sharpen", 1.0);
  if (!(sharpen >= 1 && sharpen <= 100))
    throw std::invalid_argument("markov: sharpen: expected a number from 1 to 100");
  return std::make_unique<Markov>(config, symbols, sharpen, options);
}

const RegisterTask markov_registered({
    .name = kMarkovTask,
    .summary = "the next symbol of a Markov chain, a new one each time: made",
    .metric = "nats per token",
    .make = make_markov,
});

}  // namespace
}  // namespace lagwise
