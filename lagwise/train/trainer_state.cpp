#include "lagwise/train/trainer_state.h"

#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/formats/strict_json.h"
#include "lagwise/train/recipe_fields.h"

namespace lagwise {
namespace {

using Json = nlohmann::json;
using Ordered = nlohmann::ordered_json;

constexpr std::string_view kModel = "model.";

// How state.json ends: the hash of all before this, and the end of the object.
constexpr std::string_view kHash = ",\n \"fnv1a\": \"", kEnd = "\"\n}\n";

std::string with_hash(const std::string& body) {
  return body + std::string(kHash) +
         data::hash_text(data::fnv1a(data::bytes_of(body))) + std::string(kEnd);
}

/// What a key of a recipe is called in state.json, where `grid` are its cells.
std::string kept_key(const RecipeField& field) {
  const std::string key(field.key.substr(kModel.size()));
  return key == "grid" ? "geometry" : key;
}

Ordered model_json(const ModelConfig& config) {
  Recipe recipe;
  recipe.model = config;
  Ordered json = {{"model", config.model},     {"vocabulary", config.vocabulary},
                  {"classes", config.classes}, {"length", config.length},
                  {"grid", config.grid},       {"patch", config.patch},
                  {"seed", config.seed}};
  for (const RecipeField& field : recipe_fields()) {
    if (!field.key.starts_with(kModel)) continue;
    const std::string key = kept_key(field);
    std::visit([&](const auto& value) { json[key] = value; }, field.kept(recipe));
  }
  return json;
}

/// Takes entries out of an object; whatever is missing or odd is a DataError.
class Reader {
 public:
  Reader(const std::string& file, const Json& json) : file_(file), json_(json) {
    if (!json_.is_object()) throw DataError(file_, -1, "a JSON object");
  }

  template <class T>
  void take(const std::string& key, T& value) const {
    const auto found = json_.find(key);
    if (found == json_.end()) refuse(key);
    try {
      value = found->template get<T>();
    } catch (const Json::exception&) {
      refuse(key);
    }
  }

  Reader inside(const std::string& key) const {
    const auto found = json_.find(key);
    if (found == json_.end() || !found->is_object()) refuse(key);
    return Reader(file_, *found);
  }

  const Json& json() const { return json_; }
  [[noreturn]] void refuse(const std::string& key) const {
    throw DataError(file_, -1, "an entry '" + key + "' as lagwise writes it");
  }

 private:
  const std::string& file_;
  const Json& json_;
};

RecipeField::Value value_of(const Json& json) {
  if (json.is_string()) return json.get<std::string>();
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_float()) return json.get<double>();
  if (json.is_number_integer()) return json.get<int64_t>();
  return std::vector<int64_t>();
}

ModelConfig read_model(const Reader& in) {
  Recipe recipe;
  for (const RecipeField& field : recipe_fields()) {
    if (!field.key.starts_with(kModel)) continue;
    const std::string key = kept_key(field);
    const auto found = in.json().find(key);
    if (found == in.json().end() && key == "geometry") continue;  // an older run: auto
    const auto fits = [&] {
      try {
        return field.set_kept(recipe, value_of(*found));
      } catch (const std::invalid_argument&) {  // an encoding that is none
        return false;
      }
    };
    if (found == in.json().end() || !fits()) in.refuse("model." + key);
  }
  ModelConfig& config = recipe.model;
  in.take("model", config.model);
  in.take("vocabulary", config.vocabulary);
  in.take("classes", config.classes);
  in.take("length", config.length);
  in.take("grid", config.grid);
  in.take("patch", config.patch);
  in.take("seed", config.seed);
  const auto check = [&](const char* key, int64_t size) {
    if (size < 0 || size > INT32_MAX) in.refuse(std::string(kModel) + key);
  };
  check("vocabulary", config.vocabulary), check("classes", config.classes);
  check("length", config.length), check("patch", config.patch);
  for (const int64_t size : config.grid) check("grid", size);
  return config;
}

Ordered origin_json(const Origin& origin) {
  return {{"from", origin.from},      {"step", origin.step}, {"taken", origin.taken},
          {"partly", origin.partly},  {"anew", origin.anew}, {"left", origin.left},
          {"changed", origin.changed}};
}

Origin read_origin(const Reader& in) {
  Origin origin;
  in.take("from", origin.from);
  in.take("step", origin.step);
  in.take("taken", origin.taken);
  in.take("partly", origin.partly);
  in.take("anew", origin.anew);
  in.take("left", origin.left);
  in.take("changed", origin.changed);
  return origin;
}

}  // namespace

std::string origin_text(const Origin& origin) {
  return origin_json(origin).dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string model_config_text(const ModelConfig& config) {
  return model_json(config).dump();
}

ModelConfig parse_model_config(const std::string& file, const std::string& text) {
  const Json json =
      data::parse_strict_json(file, 0, data::bytes_of(text), {.fractions = true});
  return read_model(Reader(file, json));
}

std::string state_text(const TrainerState& state) {
  Ordered json = {{"step", state.step}, {"best", nullptr}};
  if (state.best)
    json["best"] = {{"step", state.best->step}, {"value", state.best->value}};
  json["judged"] = state.judged;
  json["tokens"] = state.tokens;
  if (state.tokens_read > 0) json["tokens_read"] = state.tokens_read;
  json["seconds"] = state.seconds;
  json["pending"] = {{"loss", state.pending.loss},
                     {"targets", state.pending.targets},
                     {"tokens", state.pending.tokens},
                     {"seconds", state.pending.seconds}};
  json["threads"] = state.threads;
  json["arithmetic"] = state.arithmetic;
  json["seed"] = state.model.seed;
  json["model"] = model_json(state.model);
  json["words"] = state.words;
  if (!state.tokenizer.empty()) json["tokenizer"] = state.tokenizer;
  if (!state.class_names.empty()) json["class_names"] = state.class_names;
  json["data_hash"] = data::hash_text(state.data_hash);
  json["recipe"] = state.recipe;
  if (state.origin) json["origin"] = origin_json(*state.origin);
  json["files"] = state.files;
  std::string text = json.dump(1, ' ', false, Json::error_handler_t::replace);
  text.resize(text.rfind("\n}"));
  return with_hash(text);
}

TrainerState parse_state(const std::string& file, const std::string& text) {
  const Json json =
      data::parse_strict_json(file, 0, data::bytes_of(text), {.fractions = true});
  const Reader in(file, json);
  if (in.json().contains("fnv1a") &&
      with_hash(text.substr(0, text.rfind(kHash))) != text)
    throw DataError(file, -1, "the text whose hash it ends with: it is damaged");
  TrainerState state;
  in.take("step", state.step);
  if (state.step < 0) in.refuse("step");
  if (!in.json().value("best", Json()).is_null()) {
    const Reader best = in.inside("best");
    state.best.emplace();
    best.take("step", state.best->step);
    best.take("value", state.best->value);
  }
  if (in.json().contains("judged")) in.take("judged", state.judged);
  in.take("tokens", state.tokens);
  if (in.json().contains("tokens_read")) in.take("tokens_read", state.tokens_read);
  in.take("seconds", state.seconds);
  const Reader pending = in.inside("pending");
  pending.take("loss", state.pending.loss);
  pending.take("targets", state.pending.targets);
  pending.take("tokens", state.pending.tokens);
  pending.take("seconds", state.pending.seconds);
  in.take("threads", state.threads);
  if (in.json().contains("arithmetic")) in.take("arithmetic", state.arithmetic);
  state.model = read_model(in.inside("model"));
  in.take("words", state.words);
  if (in.json().contains("tokenizer")) in.take("tokenizer", state.tokenizer);
  if (in.json().contains("class_names")) in.take("class_names", state.class_names);
  std::string hash;
  in.take("data_hash", hash);
  if (hash.size() != 16 || hash.find_first_not_of("0123456789abcdef") != hash.npos)
    in.refuse("data_hash");
  state.data_hash = std::stoull(hash, nullptr, 16);
  in.take("recipe", state.recipe);
  if (in.json().contains("origin")) state.origin = read_origin(in.inside("origin"));
  if (in.json().contains("files")) in.take("files", state.files);
  return state;
}

}  // namespace lagwise
