// `lagwise predict`: which class a trained classifier gives to files, with how much
// confidence.

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <numeric>
#include <stdexcept>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/run_flags.h"
#include "lagwise/cli/terminal/utf8.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/errors.h"
#include "lagwise/data/formats/mapped_file.h"
#include "lagwise/train/prediction.h"

namespace lagwise::cli {
namespace {

using PredictionJson = nlohmann::ordered_json;

struct PredictFlags {
  RunFlags run;
  std::vector<std::string> files, texts;
  int top = 3;
  bool json = false;
};

/// What all files and texts hold, in the order they were given.
std::vector<Unlabelled> asked_for(const PredictFlags& flags, const Run& run) {
  std::vector<Unlabelled> all;
  const auto take = [&](const std::string& name, data::Bytes bytes) {
    auto some = read_unlabelled(run.recipe.data.task, name, bytes, run.model_config(),
                                run.tokenizer);
    // A row of a table may be empty, as those of training may.
    if (std::ranges::all_of(some,
                            [](const Unlabelled& one) { return one.first.empty(); }))
      throw DataError(name, -1, "something to classify, got nothing");
    std::ranges::move(some, std::back_inserter(all));
  };
  for (const std::string& text : flags.texts)
    if (text.empty())
      throw std::invalid_argument(
          "--text: expected something to classify, got nothing");
  for (size_t i = 0; i < flags.texts.size(); ++i)
    take(fmt::format("text {}", i + 1), data::bytes_of(flags.texts[i]));
  for (const std::string& file : flags.files) {
    if (file == "-") {
      const std::string text{std::istreambuf_iterator<char>(std::cin), {}};
      take("stdin", data::bytes_of(text));
      continue;
    }
    const data::MappedFile mapped(file);
    take(file, mapped.bytes());
  }
  return all;
}

void print_prediction(const Run& run, const Prediction& one, int top, size_t width) {
  std::vector<size_t> order(one.probabilities.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t i) { return one.probabilities[i]; });
  order.resize(std::min(order.size(), static_cast<size_t>(top)));
  fmt::print("{:<{}}", one.name, width);
  for (const size_t i : order)
    fmt::print("  {} {:.3f}", shown_text(class_name(run, i)), one.probabilities[i]);
  fmt::print("\n");
}

PredictionJson prediction_json(const Run& run, const Prediction& one) {
  PredictionJson shares = PredictionJson::object();
  for (size_t i = 0; i < one.probabilities.size(); ++i)
    shares[class_name(run, i)] = one.probabilities[i];
  return {{"input", one.name},
          {"label", class_name(run, one.best())},
          {"class", one.best()},
          {"probability", one.probabilities[one.best()]},
          {"probabilities", shares}};
}

void run_predict(const PredictFlags& flags) {
  if (flags.files.empty() && flags.texts.empty())
    throw std::invalid_argument("expected FILE or --text, got neither");
  const Run run = open(flags.run, false);
  const std::vector<Prediction> found = predict(run, asked_for(flags, run));
  if (flags.json) {
    PredictionJson all = PredictionJson::array();
    for (const Prediction& one : found) all.push_back(prediction_json(run, one));
    const PredictionJson tree = {
        {"run", run.folder}, {"step", run.step}, {"predictions", all}};
    fmt::print("{}\n",
               tree.dump(2, ' ', false, PredictionJson::error_handler_t::replace));
    return;
  }
  size_t width = 0;
  for (const Prediction& one : found) width = std::max(width, one.name.size());
  for (const Prediction& one : found) print_prediction(run, one, flags.top, width);
}

void add_predict(CLI::App& app) {
  CLI::App* verb =
      app.add_subcommand("predict", "Classify files with a trained classifier");
  verb->footer(
      "Text: a file is one text, each row of a .csv, .tsv or .jsonl one more. Images: "
      "PNG "
      "or\nJPEG, cut and shrunk to the size of training. ListOps: an expression a "
      "line. "
      "Retrieval:\ntwo texts a line with a tab between. What is printed are the most "
      "likely classes with\ntheir probabilities.");
  const auto flags = std::make_shared<PredictFlags>();
  add_run_flags(*verb, flags->run);
  verb->remove_option(verb->get_option("--data"));  // it reads none
  verb->add_option("FILE", flags->files, "What to classify; - from stdin")
      ->check(file_name())
      ->type_name("");
  verb->add_option("--text", flags->texts,
                   "A text to classify; may be given repeatedly")
      ->take_all()
      ->allow_extra_args(false)
      ->type_name("TEXT");
  verb->add_option("--top", flags->top, "Print so many classes of each")
      ->check(whole_number(1, kMostCount))
      ->capture_default_str();
  verb->add_flag("--json", flags->json,
                 "Print one JSON object instead, with the probability of every class");
  verb->callback([flags] { run_predict(*flags); });
}

const RegisterVerb predict_registered({.name = "predict",
                                       .place = 5,
                                       .add = add_predict});

}  // namespace
}  // namespace lagwise::cli
