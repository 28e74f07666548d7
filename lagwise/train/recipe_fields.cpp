#include "lagwise/train/recipe_fields.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "lagwise/encodings/encoding_text.h"
#include "lagwise/nn/attention_presets.h"

namespace lagwise {
namespace {

// At the place of a member: LAGWISE_AT(train.steps).
#define LAGWISE_AT(member) ([](Recipe & recipe) -> auto& { return recipe.member; })

/// The deduced reference type picks the alternative of Place.
template <class At>
RecipeField::Place at(At place) {
  return +place;
}

std::vector<RecipeField> model_fields() {
  return {
      {"model.layers", "blocks", at(LAGWISE_AT(model.layers)), 1},
      {"model.dim", "width of a row", at(LAGWISE_AT(model.dim)), 1},
      {"model.heads", "of attention; they divide dim", at(LAGWISE_AT(model.heads)), 1},
      {"model.key_dim", "width of a head's queries and keys; 0: dim / heads",
       at(LAGWISE_AT(model.key_dim)), 0},
      {"model.value_dim", "width of a head's values; 0: dim / heads",
       at(LAGWISE_AT(model.value_dim)), 0},
      {"model.feed_forward", "width inside a block; 0: 4 dim",
       at(LAGWISE_AT(model.feed_forward)), 0},
      {"model.dropout", "probability", at(LAGWISE_AT(model.dropout)), 0, 1},
      {.key = "model.norm",
       .help = "kind of norm",
       .place = at(LAGWISE_AT(model.norm)),
       .words = {"rms", "layer"}},
      {"model.pre_norm", "norm before each part of a block, else after",
       at(LAGWISE_AT(model.pre_norm))},
      {"model.tied", "input and output embedding are one matrix",
       at(LAGWISE_AT(model.tied))},
      {.key = "model.pooling",
       .help = "how a classifier makes one row of many",
       .place = at(LAGWISE_AT(model.pooling)),
       .words = {"mean", "cls"}},
      {.key = "model.grid",
       .help = "of pictures, what encodings see: their axes, or a line of cells; auto: "
               "axes where they take them",
       .place = at(LAGWISE_AT(model.geometry)),
       .words = {"auto", "line", "grid"}},
      {.key = "model.encoding",
       .help = "positional encoding, or one for each layer; see lagwise encodings",
       .place = at(LAGWISE_AT(model.encoding)),
       .keep = full_encoding,
       .recall = stored_encoding},
      {.key = "model.attention",
       .help = "of all layers, or one for each; see lagwise list attentions",
       .place = at(LAGWISE_AT(model.attention)),
       .keep = nn::expand_presets},
      {.key = "model.cross_encoding",
       .help = "between the sequences of an encoder_decoder",
       .place = at(LAGWISE_AT(model.cross_encoding)),
       .keep = full_encoding,
       .recall = stored_encoding},
      {.key = "model.cross_attention",
       .help = "between the sequences of an encoder_decoder",
       .place = at(LAGWISE_AT(model.cross_attention)),
       .keep = nn::expand_presets},
  };
}

std::vector<RecipeField> data_fields() {
  return {
      {"data.task", "what to learn, with its options", at(LAGWISE_AT(data.task))},
      {"data.path", "a file, a folder or a prepared set; empty: generated",
       at(LAGWISE_AT(data.path))},
      {"data.length", "tokens of a training example at most",
       at(LAGWISE_AT(data.length)), 1},
      {"data.seed", "of shuffling, cropping and generating", at(LAGWISE_AT(data.seed)),
       0},
  };
}

std::vector<RecipeField> train_fields() {
  return {
      {"train.steps", "updates of the parameters", at(LAGWISE_AT(train.steps)), 1},
      {"train.batch", "examples of a micro-step", at(LAGWISE_AT(train.batch)), 1,
       1 << 24},
      {"train.accumulate", "micro-steps of a step", at(LAGWISE_AT(train.accumulate)), 1,
       65536},
      {"train.leaves",
       "slices of a batch, a power of two, that as many processes may share out",
       at(LAGWISE_AT(train.leaves)), 1, 65537},
      {"train.sequence_ranks",
       "processes, a power of two, that share out the tokens of each example",
       at(LAGWISE_AT(train.sequence_ranks)), 1, 65537},
      {"train.lr", "learning rate at its highest; the factor of inverse_root",
       at(LAGWISE_AT(train.lr)), 0},
      {.key = "train.schedule",
       .help = "of the learning rate after the warm-up",
       .place = at(LAGWISE_AT(train.schedule)),
       .words = {"cosine", "inverse_root", "constant"}},
      {"train.warmup", "steps in which the learning rate rises from 0",
       at(LAGWISE_AT(train.warmup)), 0},
      {"train.final_lr", "of cosine, as a fraction of lr",
       at(LAGWISE_AT(train.final_lr)), 0},
      {"train.weight_decay", "of matrices; norms, biases and encodings have none",
       at(LAGWISE_AT(train.weight_decay)), 0},
      {"train.beta1", "of AdamW's mean gradient", at(LAGWISE_AT(train.beta1)), 0, 1},
      {"train.beta2", "of AdamW's mean square", at(LAGWISE_AT(train.beta2)), 0, 1},
      {"train.eps", "of AdamW", at(LAGWISE_AT(train.eps)), 0},
      {"train.clip", "most the norm of the gradient may be; 0: anything",
       at(LAGWISE_AT(train.clip)), 0},
      {"train.past",
       "windows of the text read before one is trained on, drawn from a list: 0,0,1,3",
       at(LAGWISE_AT(train.past))},
      {"train.eval_every", "steps between evaluations; 0: only at the end",
       at(LAGWISE_AT(train.eval_every)), 0},
      {"train.eval_examples", "of the split valid; 0: all",
       at(LAGWISE_AT(train.eval_examples)), 0},
      {"train.checkpoint_every", "steps between checkpoints",
       at(LAGWISE_AT(train.checkpoint_every)), 1},
      {"train.log_every", "steps between lines of metrics.jsonl",
       at(LAGWISE_AT(train.log_every)), 1},
      {"train.threads", "0: as many as the machine has cores",
       at(LAGWISE_AT(train.threads)), 0, 1025},
      {.key = "train.precision",
       .help = "of products and of what is kept for gradients; parameters are f32",
       .place = at(LAGWISE_AT(train.precision)),
       .words = {"f32", "bf16"}},
      {"train.recompute",
       "feed-forward layers keep less and compute it anew: less memory, more time",
       at(LAGWISE_AT(train.recompute))},
      {"train.seed", "of parameters, noise and dropout", at(LAGWISE_AT(train.seed)), 0},
      {"train.from",
       "a run, or one of its checkpoints, whose weights the model begins with",
       at(LAGWISE_AT(train.from))},
      {"train.freeze",
       "parameters that are not trained, as patterns of names: embed.*,layers.0.*",
       at(LAGWISE_AT(train.freeze))},
  };
}

#undef LAGWISE_AT

/// The shortest text that reads back as the same number, never like a whole one.
std::string written(double number) {
  char text[40];
  const auto end = std::to_chars(text, text + sizeof(text), number).ptr;
  std::string shortest(text, end);
  if (shortest.find_first_of(".en") == std::string::npos) shortest += ".0";
  return shortest;
}

std::string written(int64_t number) { return std::to_string(number); }

template <class T>
std::string short_number(T number) {
  return number == std::floor(number) && std::abs(number) < 1e15
             ? std::to_string(static_cast<int64_t>(number))
             : written(static_cast<double>(number));
}

/// The whole of `text` as a number.
template <class T>
bool read_number(const std::string& text, T& number) {
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && stopped == end;
}

}  // namespace

std::string RecipeField::expected() const {
  if (!words.empty()) {
    std::string list;
    for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
    return "one of " + list;
  }
  constexpr const char* kKinds[] = {"text", "a whole number", "a whole number",
                                    "a number", "true or false"};
  std::string text = kKinds[place.index()];
  if (std::isfinite(least)) text += ", at least " + short_number(least);
  if (std::isfinite(below)) text += ", below " + short_number(below);
  return text;
}

RecipeField::Value RecipeField::get(const Recipe& recipe) const {
  Recipe& same = const_cast<Recipe&>(recipe);  // Place has no second form for reading
  return std::visit(
      [&](auto place) -> Value {
        const auto value = place(same);
        if constexpr (std::is_same_v<decltype(value), const uint64_t>)
          return static_cast<int64_t>(value);
        else
          return value;
      },
      place);
}

RecipeField::Value RecipeField::kept(const Recipe& recipe) const {
  const Value value = get(recipe);
  return keep ? keep(std::get<std::string>(value)) : value;
}

bool RecipeField::set_kept(Recipe& recipe, const Value& value) const {
  const auto* text = std::get_if<std::string>(&value);
  return set(recipe, recall && text ? recall(*text) : value);
}

bool RecipeField::set(Recipe& recipe, const Value& value) const {
  const auto in_range = [&](auto number) {
    const auto x = static_cast<double>(number);
    return std::isfinite(x) && x >= least && x < below;
  };
  if (const auto* at = std::get_if<std::string& (*)(Recipe&)>(&place)) {
    const auto* text = std::get_if<std::string>(&value);
    if (!text) return false;
    if (!words.empty() && std::find(words.begin(), words.end(), *text) == words.end())
      return false;
    (*at)(recipe) = *text;
    return true;
  }
  if (const auto* at = std::get_if<bool& (*)(Recipe&)>(&place)) {
    const auto* flag = std::get_if<bool>(&value);
    if (flag) (*at)(recipe) = *flag;
    return flag != nullptr;
  }
  const auto* whole = std::get_if<int64_t>(&value);
  const auto* number = std::get_if<double>(&value);
  if (const auto* at = std::get_if<double& (*)(Recipe&)>(&place)) {
    if (!whole && !number) return false;
    const double x = whole ? static_cast<double>(*whole) : *number;
    if (!in_range(x)) return false;
    (*at)(recipe) = x;
    return true;
  }
  if (!whole || !in_range(*whole)) return false;
  if (const auto* at = std::get_if<int64_t& (*)(Recipe&)>(&place))
    (*at)(recipe) = *whole;
  if (const auto* at = std::get_if<uint64_t& (*)(Recipe&)>(&place))
    (*at)(recipe) = static_cast<uint64_t>(*whole);
  return true;
}

bool RecipeField::set_text(Recipe& recipe, const std::string& text) const {
  if (std::holds_alternative<std::string& (*)(Recipe&)>(place))
    return set(recipe, text);
  if (text == "true" || text == "false") return set(recipe, text == "true");
  int64_t whole = 0;
  if (read_number(text, whole)) return set(recipe, whole);
  double number = 0;
  return read_number(text, number) && set(recipe, number);
}

const std::vector<RecipeField>& recipe_fields() {
  static const std::vector<RecipeField> fields = [] {
    std::vector<RecipeField> all = {
        {"title", "one line for people",
         [](Recipe& recipe) -> std::string& { return recipe.title; }}};
    for (auto part : {model_fields(), data_fields(), train_fields()})
      all.insert(all.end(), part.begin(), part.end());
    return all;
  }();
  return fields;
}

std::string toml_value(const RecipeField::Value& value) {
  if (const auto* text = std::get_if<std::string>(&value))
    return data::toml_text(*text);
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* number = std::get_if<double>(&value)) return written(*number);
  if (const auto* whole = std::get_if<int64_t>(&value)) return written(*whole);
  std::string list;
  for (const int64_t one : std::get<std::vector<int64_t>>(value))
    list += (list.empty() ? "" : ", ") + written(one);
  return "[" + list + "]";
}

}  // namespace lagwise
