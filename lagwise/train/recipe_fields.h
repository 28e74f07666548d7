#pragma once

#include <limits>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "lagwise/data/formats/toml_entries.h"
#include "lagwise/train/recipe.h"

namespace lagwise {

/// One key of a recipe: where its value lives, what it means and what is legal. The
/// table of them drives reading, --set, writing, messages and the list of keys.
struct RecipeField {
  using Value = data::TomlEntry::Value;
  using Place =
      std::variant<std::string& (*)(Recipe&), int64_t& (*)(Recipe&),
                   uint64_t& (*)(Recipe&), double& (*)(Recipe&), bool& (*)(Recipe&)>;
  std::string_view key;  ///< "train.steps"
  std::string_view help;
  Place place;
  double least = -std::numeric_limits<double>::infinity();
  double below = std::numeric_limits<double>::infinity();  ///< value < below
  std::vector<std::string> words = {};  ///< the legal ones; empty: any

  /// Of text with options: as a run keeps it, every option stated, and from there back.
  using Rewrite = std::string (*)(const std::string&);
  Rewrite keep = nullptr, recall = nullptr;

  std::string expected() const;  ///< "a whole number, at least 1"

  Value get(const Recipe& recipe) const;
  Value kept(const Recipe& recipe) const;  ///< as a run keeps it
  /// False: a value of another kind or out of range; nothing has changed.
  bool set(Recipe& recipe, const Value& value) const;
  /// The same of a value that a run kept.
  bool set_kept(Recipe& recipe, const Value& value) const;
  /// The same from the text behind --set key=.
  bool set_text(Recipe& recipe, const std::string& text) const;
};

/// In the order in which a recipe is written.
const std::vector<RecipeField>& recipe_fields();

/// A value as TOML: 0.003, "cosine", true.
std::string toml_value(const RecipeField::Value& value);

}  // namespace lagwise
