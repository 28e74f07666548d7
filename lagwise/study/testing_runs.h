#pragma once

// Support for tests; never part of the program.

#include <string>

#include "lagwise/data/testing_files.h"
#include "lagwise/study/compare/plan.h"
#include "lagwise/study/run_files.h"
#include "lagwise/train/recipe.h"

namespace lagwise::testing {

inline constexpr const char* kSmallRecipe =
    "[model]\nlayers = 1\ndim = 16\nheads = 2\n[data]\ntask = "
    "\"language:valid=0.3,test=0.3\"\nlength = 16\npath = \"";

/// A folder with a recipe on a small corpus.
struct Corpus : TempFolder {
  Corpus() {
    std::string text;
    for (int i = 0; i < 200; ++i) text += "line " + std::to_string(i * i) + "\n";
    put(*this / "corpus/train.txt", text);
    put(recipe(),
        kSmallRecipe + (*this / "corpus") + "\"\n[train]\nsteps = 10\nseed = 7\n");
  }
  std::string recipe() const { return *this / "small.toml"; }

  CompareRequest request(const std::string& encodings,
                         const std::string& attentions = "") const {
    CompareRequest request;
    request.recipes = {recipe()};
    request.encodings = encodings, request.attentions = attentions;
    request.out = *this / "out";
    return request;
  }
};

/// A run's folder as train and eval leave it.
inline void put_run(const std::string& folder, const Recipe& recipe, bool done,
                    double value, const std::string& data_hash = "") {
  put(folder + "/recipe.toml", recipe_text(recipe));
  put(folder + "/run.json",
      Json({{"parameters", 1234}, {"data_hash", data_hash}}).dump());
  std::string metrics =
      R"({"step": 5, "loss": 2.0, "tokens": 1000, "seconds": 2.0})"
      "\n"
      R"({"step": 5, "split": "valid", "loss": 1.5, "metric": "bits per byte", "value": 2})"
      "\n";
  if (done)
    metrics += Json({{"step", recipe.train.steps},
                     {"done", true},
                     {"seconds", 4},
                     {"peak_bytes", 5000000}})
                   .dump();
  put(folder + "/metrics.jsonl", metrics + "\n{\"half");
  if (!done) return;
  put(folder + "/eval/metric-test.json",
      Json({{"split", "test"}, {"metric", "bits per byte"}, {"value", value}}).dump());
  put(folder + "/eval/position-test.json",
      R"({"trained": 16, "spans": [{"begin": 0, "end": 8, "loss": 9},
          {"begin": 8, "end": 16, "loss": 1.25, "restart": 1.25},
          {"begin": 16, "end": 64, "loss": 1.5, "restart": 1.0}]})");
  put(folder + "/eval/decode-test.json",
      R"({"chunk": 1, "points": [{"tokens_per_second": 1}, {"tokens_per_second": 50},
          {"tokens_per_second": 60}]})");
}

/// Replaces the loss by position of such a run, trained at 16, by this at 2x and 4x.
inline void put_lines(const std::string& folder, double loss, double restart) {
  const auto span = [&](int begin, int end) {
    return Json({{"begin", begin}, {"end", end}, {"loss", loss}, {"restart", restart}});
  };
  put(folder + "/eval/position-test.json",
      Json({{"trained", 16}, {"slide", 2}, {"spans", {span(16, 32), span(32, 64)}}})
          .dump());
}

inline Recipe recipe_of(const std::string& encoding, uint64_t seed) {
  Recipe recipe;
  recipe.model.encoding = encoding;
  recipe.train.seed = seed, recipe.train.steps = 10;
  return recipe;
}

}  // namespace lagwise::testing
