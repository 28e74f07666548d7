// Multi-query associative recall: pairs of a key and its value, then the keys again in
// another order, and what came with each is to be said. A sequence of N tokens with K
// pairs is
//
//     k_1 v_1 k_2 v_2 ... k_K v_K | slots of two tokens, S = (N - 2K) / 2 of them
//
// Each key is asked for in one slot: the slot's first token is the key, the target there
// is its value, and no other token has a target. All other tokens are noise, which is
// neither key nor value, so that an answer is never written out. The slots of the K
// questions are drawn one after the other, without repetition, with
//
//     P(slot s) ~ (s + 1)^(power - 1),   s = 0 .. S - 1
//
// so that with power near 0 every doubling of the distance is as likely as another, and
// with power = 1 every slot is. K stays what it is in longer sequences: only the
// distance between a pair and its question grows, with the median near the square root
// of S for power near 0, near S / 2 for power = 1.
//
// Training may stay for long at guessing one of the values it has seen: among many pairs
// each question tells little, and few tokens are questions. Two options change what is
// trained on, never what a model is judged by (valid and test):
//
//     fewest     a training sequence has `fewest` to K pairs
//     questions  and asks for its keys up to so many times in all, each key about as often
//
// both drawn evenly. Two pairs tell at once which key goes with which value, and what is
// learned from them serves the others.
//
// Paper  Arora et al., "Zoology: Measuring and Improving Recall in Efficient Language
//        Models", 2023, whose noise may also be keys and values.

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "lagwise/tasks/made_sequences.h"

namespace lagwise {
namespace {

constexpr const char* kRecallTask = "recall";

struct RecallOptions {
  int64_t pairs, symbols;  // of keys, of values and of noise: `symbols` each
  int64_t fewest;          // pairs of a training sequence, at least
  int64_t questions;       // of a training sequence, at most; 0: one for each pair
  double power;
};

/// `count` of 0 .. all - 1, no one twice.
std::vector<int64_t> some_of(int64_t all, int64_t count, data::Dice& dice) {
  std::vector<int64_t> list(static_cast<size_t>(all));
  std::iota(list.begin(), list.end(), 0);
  for (int64_t i = 0; i < count; ++i)
    std::swap(list[static_cast<size_t>(i)],
              list[static_cast<size_t>(i + dice.pick(static_cast<int>(all - i)))]);
  list.resize(static_cast<size_t>(count));
  return list;
}

/// The slots of the questions. Exponential numbers with the rates P(slot), in rising
/// order, give slots in the order in which they would be drawn without repetition.
std::vector<int64_t> drawn_slots(int64_t slots, int64_t count, double power,
                                 data::Dice& dice) {
  std::vector<std::pair<double, int64_t>> arrivals;
  for (int64_t s = 0; s < slots; ++s)
    arrivals.emplace_back(
        -std::log(dice.roll()) * std::pow(static_cast<double>(s + 1), 1 - power), s);
  std::partial_sort(arrivals.begin(), arrivals.begin() + count, arrivals.end());
  std::vector<int64_t> drawn;
  for (int64_t i = 0; i < count; ++i)
    drawn.push_back(arrivals[static_cast<size_t>(i)].second);
  return drawn;
}

class Recall : public MadeSequences {
 public:
  Recall(const TaskConfig& config, const RecallOptions& recall, Spec& options)
      : MadeSequences(config, options), recall_(recall) {
    check_length(config.length);
  }

  std::string metric() const override { return "accuracy"; }
  bool higher_is_better() const override { return true; }
  bool judged_by_length() const override { return true; }
  double value(const Loss& total) const override {
    return static_cast<double>(total.right) /
           static_cast<double>(std::max<int64_t>(total.count, 1));
  }

  std::optional<double> guess(const std::string&) const override {
    return 1 / static_cast<double>(recall_.symbols);  // one of the values
  }

  /// The examples of a split one after the other, of the training length.
  std::vector<int64_t> stream(const std::string& split, int64_t first,
                              int64_t count) const override {
    if (first < 0 || count < 0)
      throw std::invalid_argument("recall: expected a place and a count of 0 or more");
    std::vector<int64_t> tokens;
    const int64_t n = window(0), end = std::min(first + count, size(split) * n);
    for (int64_t at = first; at < end; at = (at / n + 1) * n) {
      const auto made = make(example_dice(split, at / n), n).tokens;
      tokens.insert(tokens.end(), made.begin() + at % n,
                    made.begin() + std::min(n, end - at / n * n));
    }
    return tokens;
  }

 protected:
  int64_t vocabulary() const override { return 3 * recall_.symbols; }

  MadeSequence make(data::Dice dice, int64_t length) const override {
    return make(recall_.pairs, recall_.pairs, dice, length);
  }

  MadeSequence make_for_training(data::Dice dice, int64_t length) const override {
    int64_t pairs = recall_.pairs;
    if (recall_.fewest < pairs) pairs = between(recall_.fewest, pairs, dice);
    int64_t questions = std::min(recall_.questions, (length - 2 * pairs) / 2);
    questions = questions > pairs ? between(pairs, questions, dice) : pairs;
    return make(pairs, questions, dice, length);
  }

 private:
  /// low to high, both among them.
  static int64_t between(int64_t low, int64_t high, data::Dice& dice) {
    return low + dice.pick(static_cast<int>(high - low + 1));
  }

  MadeSequence make(int64_t pairs, int64_t questions, data::Dice& dice,
                    int64_t length) const {
    check_length(length);
    const int64_t symbols = recall_.symbols;
    const std::vector<int64_t> keys = some_of(symbols, pairs, dice);
    const std::vector<int64_t> values = some_of(symbols, pairs, dice);
    const std::vector<int64_t> slots =
        drawn_slots((length - 2 * pairs) / 2, questions, recall_.power, dice);
    MadeSequence made;
    made.targets.assign(static_cast<size_t>(length), -1);
    for (int64_t i = 0; i < length; ++i)
      made.tokens.push_back(2 * symbols + dice.pick(static_cast<int>(symbols)));
    for (size_t i = 0; i < keys.size(); ++i)
      made.tokens[2 * i] = keys[i], made.tokens[2 * i + 1] = symbols + values[i];
    for (size_t i = 0; i < slots.size(); ++i) {
      const auto question = 2 * (keys.size() + static_cast<size_t>(slots[i]));
      made.tokens[question] = keys[i % keys.size()];
      made.targets[question] = symbols + values[i % keys.size()];
    }
    return made;
  }

  /// As many slots as questions, at least.
  void check_length(int64_t length) const {
    if (length < 4 * recall_.pairs)
      throw std::invalid_argument("recall: expected sequences of at least 4 pairs = " +
                                  std::to_string(4 * recall_.pairs) + " tokens, got " +
                                  std::to_string(length));
  }

  RecallOptions recall_;
};

std::unique_ptr<Task> make_recall(const TaskConfig& config, Spec& options) {
  RecallOptions recall;
  recall.pairs = options.take("pairs", 16);
  recall.symbols = options.take("symbols", 64);
  recall.power = options.take("power", 0.01);
  if (recall.symbols < 1 || recall.symbols > 65536)
    throw std::invalid_argument("recall: symbols: expected 1 to 65536, got " +
                                std::to_string(recall.symbols));
  if (recall.pairs < 1 || recall.pairs > recall.symbols)
    throw std::invalid_argument(
        "recall: pairs: expected 1 to symbols = " + std::to_string(recall.symbols) +
        ", got " + std::to_string(recall.pairs));
  recall.fewest = options.take("fewest", recall.pairs);
  if (recall.fewest < 1 || recall.fewest > recall.pairs)
    throw std::invalid_argument(
        "recall: fewest: expected 1 to pairs = " + std::to_string(recall.pairs) +
        ", got " + std::to_string(recall.fewest));
  recall.questions = options.take("questions", 0);
  if (recall.questions != 0 && recall.questions < recall.pairs)
    throw std::invalid_argument(
        "recall: questions: expected 0 (one for each pair), or "
        "pairs = " +
        std::to_string(recall.pairs) + " and more, got " +
        std::to_string(recall.questions));
  if (!(recall.power > 0 && recall.power <= 16))
    throw std::invalid_argument("recall: power: expected above 0 and up to 16, got " +
                                std::to_string(recall.power));
  return std::make_unique<Recall>(config, recall, options);
}

const RegisterTask recall_registered({
    .name = kRecallTask,
    .summary = "the value that came with a key, long after: pairs and questions, made",
    .metric = "accuracy",
    .make = make_recall,
});

}  // namespace
}  // namespace lagwise
