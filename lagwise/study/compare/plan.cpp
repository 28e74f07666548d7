#include "lagwise/study/compare/plan.h"

#include <filesystem>
#include <memory>
#include <set>
#include <stdexcept>

#include "lagwise/core/grid.h"
#include "lagwise/core/layer_texts.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/encodings/encoding.h"
#include "lagwise/models/model.h"
#include "lagwise/train/past.h"
#include "lagwise/train/recipe.h"
#include "lagwise/train/run_folder.h"

namespace lagwise {
namespace {

/// The recipe with its data, which decides what kind of model it trains.
struct Subject {
  std::string file, name, data_hash;
  Recipe recipe;
  ModelConfig model;
  std::shared_ptr<const Task> task;
};

Subject read_subject(const std::string& file, const CompareRequest& request) {
  Subject subject;
  subject.file = file;
  subject.name = std::filesystem::path(file).stem().string();
  std::vector<std::string> set = request.set;
  for (const std::string& rate : request.rates) {
    set.push_back("train.lr=" + rate);  // each must be legal; the last one stays
    subject.recipe = read_recipe(file, set);
  }
  subject.recipe = read_recipe(file, request.set);
  subject.task = make_task(subject.recipe.data);
  subject.model = completed_model(subject.recipe, *subject.task);
  subject.data_hash = data::hash_text(subject.task->hash());
  return subject;
}

/// Whether the parts are good by themselves: if not, the user has misspelt one.
void check_parts(const ModelConfig& model, const std::vector<std::string>& encodings,
                 const std::vector<std::string>& attentions) {
  const HeadShape shape{.heads = model.heads,
                        .dim = model.key_width(),
                        .model_dim = model.dim,
                        .value_dim = model.value_width()};
  for (const std::string& text : encodings)
    for (const std::string& one : texts_by_layer("model.encoding", text, model.layers))
      make_encoding(one, shape);
  for (const std::string& text : attentions) {
    ModelConfig config = model;
    config.encoding = "none", config.attention = text;
    make_model(config);
  }
}

/// Why the parts of a cell do not fit together; empty: they do.
std::string why_not(const Subject& subject, const GridCell& cell) {
  ModelConfig config = subject.model;
  config.encoding = cell.encoding, config.attention = cell.attention;
  const std::string& past = cell.past.empty() ? subject.recipe.train.past : cell.past;
  const PastMultiples multiples(past);  // a list that is none is the user's mistake
  try {
    const auto model = make_model(config);
    check_past(*model, *subject.task, multiples, subject.recipe.data.length, {});
    return "";
  } catch (const std::invalid_argument& reason) {
    return reason.what();
  }
}

std::string name_of(const GridCell& cell) {
  std::string name = name_for_file(cell.recipe) + "~" + name_for_file(cell.encoding) +
                     "~" + name_for_file(cell.attention);
  if (!cell.past.empty()) name += "~past=" + name_for_file(cell.past);
  if (!cell.rate.empty()) name += "~lr=" + name_for_file(cell.rate);
  constexpr size_t kLongest = 200;
  if (name.size() > kLongest)
    throw std::invalid_argument("expected a cell whose folder's name has at most " +
                                std::to_string(kLongest) + " characters, got " + name);
  return name;
}

/// The cells of one encoding, attention and past: one for each learning rate.
void add_group(std::vector<GridCell>& cells, const Subject& subject, GridCell cell,
               const std::vector<std::string>& rates) {
  cell.recipe = subject.name, cell.file = subject.file;
  cell.first_seed = static_cast<int64_t>(subject.recipe.train.seed);
  cell.data_path = subject.recipe.data.path, cell.data_hash = subject.data_hash;
  cell.decodes = model_row(subject.model.model).continues;
  cell.not_served = why_not(subject, cell);
  cell.group = cells.empty() ? 0 : cells.back().group + 1;
  if (rates.empty()) {
    cell.name = name_of(cell);
    return cells.push_back(cell);
  }
  for (const std::string& rate : rates) {
    cell.rate = rate;
    cell.name = name_of(cell);
    cells.push_back(cell);
  }
}

/// What goes over the recipe of a cell for one seed, as words behind --set.
std::vector<std::string> values_over(const GridCell& cell,
                                     const CompareRequest& request, int64_t seed) {
  std::vector<std::string> values = request.set;
  values.push_back("model.encoding=" + cell.encoding);
  values.push_back("model.attention=" + cell.attention);
  if (!cell.past.empty()) values.push_back("train.past=" + cell.past);
  if (!cell.rate.empty()) values.push_back("train.lr=" + cell.rate);
  values.push_back("train.seed=" + std::to_string(cell.first_seed + seed));
  return values;
}

void check_names(const std::vector<Subject>& subjects) {
  std::set<std::string> names;
  for (const Subject& subject : subjects)
    if (!names.insert(subject.name).second)
      throw std::invalid_argument(
          "--recipe: expected recipes with different names, got " + subject.name +
          " twice");
}

}  // namespace

std::string GridCell::folder(const std::string& out, int64_t seed) const {
  return (std::filesystem::path(out) / name / ("seed-" + std::to_string(seed)))
      .string();
}

Recipe GridCell::recipe_for(const CompareRequest& request, int64_t seed) const {
  return read_recipe(file, values_over(*this, request, seed));
}

std::vector<std::string> GridCell::train_words(const CompareRequest& request,
                                               int64_t seed,
                                               std::optional<int64_t> threads) const {
  std::vector<std::string> words = {"train", file, "--out", folder(request.out, seed)};
  std::vector<std::string> values = values_over(*this, request, seed);
  if (threads) values.push_back("train.threads=" + std::to_string(*threads));
  for (const std::string& value : values) words.insert(words.end(), {"--set", value});
  return words;
}

std::vector<GridCell> plan_cells(const CompareRequest& request) {
  std::vector<Subject> subjects;
  for (const std::string& file : request.recipes)
    subjects.push_back(read_subject(file, request));
  check_names(subjects);
  std::vector<GridCell> cells;
  for (const Subject& subject : subjects) {
    const auto listed = [](const char* option, const std::string& text,
                           const std::string& own) {
      return text.empty() ? std::vector<std::string>{own} : expand_grid(option, text);
    };
    const auto encodings =
        listed("--encodings", request.encodings, subject.recipe.model.encoding);
    const auto attentions =
        listed("--attention", request.attentions, subject.recipe.model.attention);
    const auto pasts = listed("--past", request.pasts, "");
    check_parts(subject.model, encodings, attentions);
    for (const std::string& encoding : encodings)
      for (const std::string& attention : attentions)
        for (const std::string& past : pasts) {
          GridCell cell;
          cell.encoding = encoding, cell.attention = attention, cell.past = past;
          add_group(cells, subject, cell, request.rates);
        }
  }
  return cells;
}

}  // namespace lagwise
