#include "lagwise/train/recipe.h"

#include <stdexcept>

#include "lagwise/core/nearest.h"
#include "lagwise/data/formats/mapped_file.h"
#include "lagwise/train/recipe_fields.h"

namespace lagwise {
namespace {

[[noreturn]] void refuse(const std::string& where, const std::string& what) {
  throw std::invalid_argument(where + ": " + what);
}

/// Keys people may look for that something else decides.
std::string decided_elsewhere(const std::string& key) {
  if (key == "model.length") return "it is data.length";
  if (key == "model.seed") return "it is train.seed";
  for (const char* by_data :
       {"model.model", "model.vocabulary", "model.classes", "model.patch"})
    if (key == by_data) return "the data of data.task decides it";
  return "";
}

/// Another key with the same last word, or spelt alike.
std::string meant_instead(const std::string& key) {
  std::vector<std::string> keys;
  const std::string last = key.substr(key.rfind('.') + 1);
  for (const RecipeField& field : recipe_fields()) {
    keys.emplace_back(field.key);
    if (field.key.substr(field.key.rfind('.') + 1) == last)
      return "; did you mean '" + keys.back() + "'?";
  }
  return did_you_mean(key, keys);
}

const RecipeField& field_of(const std::string& where, const std::string& key) {
  for (const RecipeField& field : recipe_fields())
    if (field.key == key) return field;
  if (const std::string who = decided_elsewhere(key); !who.empty())
    refuse(where, "'" + key + "' cannot be set: " + who);
  const std::string meant = meant_instead(key);
  refuse(where, "unknown key '" + key + "'" + (meant.empty() ? ";" : meant) +
                    " lagwise train --keys lists them");
}

[[noreturn]] void refuse_value(const std::string& where, const RecipeField& field,
                               const std::string& got) {
  refuse(where,
         std::string(field.key) + ": expected " + field.expected() + ", got " + got);
}

using Setter = bool (RecipeField::*)(Recipe&, const RecipeField::Value&) const;

Recipe parse(const std::string& name, const std::string& text, Setter setter) {
  Recipe recipe;
  for (const data::TomlEntry& entry : data::read_toml(name, data::bytes_of(text))) {
    const std::string where = name + ", line " + std::to_string(entry.line);
    const RecipeField& field = field_of(where, entry.key);
    if (!(field.*setter)(recipe, entry.value))
      refuse_value(where, field, toml_value(entry.value));
  }
  return recipe;
}

}  // namespace

Recipe parse_recipe(const std::string& name, const std::string& text,
                    const std::vector<std::string>& set) {
  Recipe recipe = parse(name, text, &RecipeField::set);
  for (const std::string& word : set) {
    const std::string where = "--set " + word;
    const size_t equals = word.find('=');
    if (equals == std::string::npos) refuse(where, "expected key=value");
    const std::string name_of_field = word.substr(0, equals);
    const RecipeField& field = field_of(where, name_of_field);
    const std::string value = word.substr(equals + 1);
    if (!field.set_text(recipe, value)) refuse_value(where, field, "'" + value + "'");
  }
  return recipe;
}

Recipe read_recipe(const std::string& file, const std::vector<std::string>& set) {
  const data::MappedFile mapped(file);
  return parse_recipe(file, std::string(data::text_of(mapped.bytes())), set);
}

Recipe parse_kept_recipe(const std::string& name, const std::string& text) {
  return parse(name, text, &RecipeField::set_kept);
}

Recipe read_kept_recipe(const std::string& file) {
  const data::MappedFile mapped(file);
  return parse_kept_recipe(file, std::string(data::text_of(mapped.bytes())));
}

std::string recipe_text(const Recipe& recipe) {
  std::string text, table;
  for (const RecipeField& field : recipe_fields()) {
    const size_t dot = field.key.rfind('.');
    const std::string of(dot == field.key.npos ? "" : field.key.substr(0, dot));
    if (of != table) text += "\n[" + of + "]\n";
    table = of;
    text += std::string(field.key.substr(dot + 1)) + " = " +
            toml_value(field.kept(recipe)) + "\n";
  }
  return text;
}

}  // namespace lagwise
