#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lagwise/train/recipe.h"

namespace lagwise {

/// What is compared: every encoding with every attention on every recipe.
struct CompareRequest {
  std::vector<std::string> recipes;   ///< files
  std::string encodings, attentions;  ///< core/grid.h; empty: the recipe's own
  std::string pasts;                  ///< values of train.past; empty: the recipe's own
  std::vector<std::string> rates;     ///< learning rates to choose from; none: the
                                      ///<   recipe's own
  std::vector<std::string> set;       ///< over every recipe, as in `lagwise train`
  int64_t seeds = 1;
  std::string out;  ///< the folder of all runs
};

/// One cell of the grid: what is trained with one seed after the other.
struct GridCell {
  std::string recipe, file;  ///< its name and where it lies
  std::string encoding, attention, rate;
  std::string past;        ///< train.past; empty: the recipe's own
  std::string name;        ///< of its folder
  int64_t first_seed = 0;  ///< the recipe's; seed n of the cell is this plus n
  bool decodes = false;    ///< a language model
  std::string not_served;  ///< why it cannot be trained; empty: it can
  size_t group = 0;        ///< cells that differ in the learning rate alone
  std::string data_path, data_hash;  ///< of the recipe's data

  std::string folder(const std::string& out, int64_t seed) const;
  /// What one seed is trained with, but for threads.
  Recipe recipe_for(const CompareRequest& request, int64_t seed) const;
  /// The words after `lagwise train` for one seed. `threads`: none: as the recipe says.
  std::vector<std::string> train_words(const CompareRequest& request, int64_t seed,
                                       std::optional<int64_t> threads) const;
};

/// Every cell, in the order in which they are trained and printed: by recipe, encoding,
/// attention, past, learning rate. A pair that does not fit together is a cell with the
/// reason in `not_served`; everything else that is wrong (an encoding or attention
/// nobody knows, a recipe, its data) is an exception, before anything is trained.
std::vector<GridCell> plan_cells(const CompareRequest& request);

}  // namespace lagwise
