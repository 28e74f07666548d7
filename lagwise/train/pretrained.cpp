#include "lagwise/train/pretrained.h"

#include <cstring>
#include <filesystem>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/mapped_file.h"
#include "lagwise/data/formats/safetensors.h"
#include "lagwise/models/model.h"
#include "lagwise/train/checkpoint.h"
#include "lagwise/train/recipe_fields.h"
#include "lagwise/train/run_folder.h"
#include "lagwise/train/tensor_file.h"

namespace lagwise {
namespace {

namespace fs = std::filesystem;

constexpr size_t kTensorsShown = 8;

void join(std::string& list, const std::string& item) {
  list += (list.empty() ? "" : "; ") + item;
}

std::string named_shape(const std::string& name, const std::vector<int64_t>& shape) {
  std::string text;
  for (const int64_t size : shape)
    text += (text.empty() ? "" : ", ") + std::to_string(size);
  return name + " [" + text + "]";
}

/// "; begun anew: a, b and 3 more", or nothing.
std::string some_of(const char* title, const std::vector<std::string>& items) {
  if (items.empty()) return "";
  std::string text = std::string("; ") + title + ": ";
  for (size_t i = 0; i < items.size() && i < kTensorsShown; ++i)
    text += (i ? ", " : "") + items[i];
  if (items.size() > kTensorsShown)
    text += " and " + std::to_string(items.size() - kTensorsShown) + " more";
  return text;
}

/// Tokens of the data: the mask of a model that fills in is none of them.
int64_t token_count(const ModelConfig& config) {
  return config.vocabulary - (model_row(config.model).fills ? 1 : 0);
}

/// What the tokens of a run are, in words.
std::string token_meaning(const TrainerState& state) {
  const std::string count = std::to_string(token_count(state.model));
  if (!state.tokenizer.empty()) return "the " + count + " tokens of a tokenizer";
  if (!state.words.empty()) return count + " words";
  if (!state.model.grid.empty() || state.model.patch > 1) return "pixels";
  return token_count(state.model) == 256 ? "bytes" : count + " symbols";
}

/// A row of the embedding must mean the same on both sides.
void check_same_tokens(const std::string& from, const TrainerState& there,
                       const TrainerState& here) {
  const std::string were = token_meaning(there), are = token_meaning(here);
  const std::string start = "train.from = " + from + ": its tokens are " + were;
  const std::string advice = "; lagwise data text or language PATH --tokenizer " +
                             from + " makes a set in them";
  if (were != are)
    throw std::invalid_argument(start + ", those of the data " + are +
                                (there.tokenizer.empty() ? "" : advice));
  if (there.tokenizer != here.tokenizer)
    throw std::invalid_argument(start + ", the data was made with another" + advice);
  if (there.words != here.words)
    throw std::invalid_argument(start + ", the data has others");
}

/// What tensors of equal shape could still mean differently, or not have at all.
void check_same_sizes(const std::string& from, const ModelConfig& there,
                      const ModelConfig& here) {
  std::string apart;
  const auto compare = [&](const char* key, const auto& was, const auto& is) {
    if (was != is)
      join(apart, std::string("model.") + key + " = " +
                      toml_value(RecipeField::Value(was)) + " there, " +
                      toml_value(RecipeField::Value(is)) + " here");
  };
  const auto inner = [](const ModelConfig& config) {
    return config.feed_forward > 0 ? config.feed_forward : 4 * config.dim;
  };
  compare("layers", there.layers, here.layers);
  compare("dim", there.dim, here.dim);
  compare("heads", there.heads, here.heads);
  if (apart.empty()) {  // else they follow from these, unless they are given
    compare("key_dim", there.key_width(), here.key_width());
    compare("value_dim", there.value_width(), here.value_width());
    compare("feed_forward", inner(there), inner(here));
  }
  compare("norm", there.norm, here.norm);
  compare("pre_norm", there.pre_norm, here.pre_norm);
  compare("patch", there.patch, here.patch);
  if (!apart.empty())
    throw std::invalid_argument("train.from = " + from +
                                ": expected a model of the same sizes, but " + apart);
}

/// The keys that change what weights do, though not their shapes.
std::vector<std::string> changed_keys(const ModelConfig& there,
                                      const ModelConfig& here) {
  Recipe was, is;
  was.model = there, is.model = here;
  std::vector<std::string> changed;
  for (const RecipeField& field : recipe_fields())
    if (field.key == "model.encoding" || field.key == "model.attention")
      if (field.kept(was) != field.kept(is)) changed.emplace_back(field.key);
  return changed;
}

/// Whether two texts name the same encoding, whatever its options. Of texts by layer
/// nobody can say.
bool same_encoding(const std::string& a, const std::string& b) {
  if (a == b) return true;
  const bool lists = (a + b).find_first_of(";|*") != std::string::npos;
  return !lists && a.substr(0, a.find(':')) == b.substr(0, b.find(':'));
}

/// Copies by name, and remembers what it did not.
class Taking {
 public:
  Taking(const TrainerState& there, const TrainerState& here, Origin& origin)
      : origin_(origin),
        same_head_(there.model.model == here.model.model &&
                   there.class_names == here.class_names),
        same_encoding_(same_encoding(there.model.encoding, here.model.encoding)),
        other_mask_(there.model.vocabulary != here.model.vocabulary) {
    for (const std::string& key : origin.changed) {
      other_encoding_ = other_encoding_ || key == "model.encoding";
      other_attention_ = other_attention_ || key == "model.attention";
    }
  }

  void take(const NamedTensor& to, const data::StoredTensor* from) {
    const std::vector<int64_t> shape = to.tensor.sizes().vec();
    const std::string text = named_shape(to.name, shape);
    const bool fits = from && from->dtype == "F32";
    const bool other =
        (is_head(to.name) && !same_head_) || (is_code(to.name) && !same_encoding_);
    if (!other && fits && from->shape == shape)
      copy(to, *from, shape.empty() ? 1 : shape[0]);
    else if (!other && fits && other_mask_ && same_columns(to, *from))
      copy_tokens(to, *from);
    else if (other || may_differ(to.name))
      origin_.anew.push_back(text);
    else if (!from)
      missing_.push_back(text);
    else
      different_.push_back(text + ", there " + named_shape(from->dtype, from->shape));
  }

  void pass_over(const data::StoredTensor& from) {
    auto& list = may_differ(from.name) ? origin_.left : extra_;
    list.push_back(named_shape(from.name, from.shape));
  }

  void refuse_rest(const std::string& from) const {
    const std::string apart = some_of("different", different_) +
                              some_of("missing there", missing_) +
                              some_of("only there", extra_);
    if (!apart.empty())
      throw std::invalid_argument("train.from = " + from +
                                  ": expected the tensors of this model" + apart);
  }

 private:
  static bool is_head(const std::string& name) {
    return name.starts_with("head.") || name == "cls" || name.starts_with("compare.");
  }

  static bool is_code(const std::string& name) {
    return name.starts_with("pos.") || name.find(".pos.") != std::string::npos;
  }

  bool may_differ(const std::string& name) const {
    const bool attention = name.find(".attn.") != std::string::npos && !is_code(name);
    return is_head(name) || (is_code(name) && other_encoding_) ||
           (attention && other_attention_);
  }

  /// Of the embedding: the rows of tokens, and perhaps one of a mask.
  static bool same_columns(const NamedTensor& to, const data::StoredTensor& from) {
    return to.name == "embed.weight" && to.tensor.dim() == 2 &&
           from.shape.size() == 2 && from.shape[1] == to.tensor.size(1);
  }

  void copy(const NamedTensor& to, const data::StoredTensor& from, int64_t rows) {
    const at::Tensor part = to.tensor.dim() == 0
                                ? to.tensor.detach()
                                : to.tensor.detach().narrow(0, 0, rows);
    if (part.nbytes() > 0)
      std::memcpy(part.data_ptr(), from.bytes.data(), part.nbytes());
    ++origin_.taken;
  }

  void copy_tokens(const NamedTensor& to, const data::StoredTensor& from) {
    const int64_t rows = std::min(to.tensor.size(0), from.shape[0]);
    copy(to, from, rows);
    origin_.partly.push_back(named_shape(to.name, to.tensor.sizes().vec()) + ": " +
                             std::to_string(rows) + " rows of " +
                             std::to_string(from.shape[0]));
  }

  Origin& origin_;
  bool same_head_, same_encoding_, other_mask_;
  bool other_encoding_ = false, other_attention_ = false;
  std::vector<std::string> missing_, extra_, different_;
};

bool is_checkpoint(const std::string& folder) {
  return fs::exists(run_file(folder, "state.json")) &&
         fs::exists(run_file(folder, "model.safetensors"));
}

/// The best checkpoint that the newest knows of.
std::string best_checkpoint(const std::string& run) {
  const Checkpoints checkpoints(run);
  const std::vector<int64_t> steps = checkpoints.steps();
  if (steps.empty())
    throw DataError(run, -1, "a checkpoint in the run; none is there yet");
  const TrainerState newest = checkpoints.read_state(steps.back());
  return checkpoints.folder(newest.best ? newest.best->step : newest.step);
}

}  // namespace

Pretrained open_pretrained(const std::string& from, const std::string& key) {
  Pretrained found;
  if (is_checkpoint(from))
    found.folder = from;
  else if (fs::exists(run_file(from, "recipe.toml")))
    found.folder = best_checkpoint(from);
  else
    throw DataError(from, -1,
                    "the folder of a run, or of one of its checkpoints (" + key + ")");
  const data::MappedFile text(run_file(found.folder, "state.json"));
  found.state = parse_state(text.name(), std::string(data::text_of(text.bytes())));
  return found;
}

Origin take_weights(const std::string& from, const std::string& run,
                    const TrainerState& to,
                    const std::vector<NamedTensor>& parameters) {
  const Pretrained pretrained = open_pretrained(from, "train.from");
  const TrainerState& there = pretrained.state;
  std::error_code none;
  const fs::path whose = fs::canonical(pretrained.folder).parent_path().parent_path();
  if (fs::equivalent(whose, run, none))
    throw std::invalid_argument(
        "train.from: expected another run than the one to "
        "train, got " +
        from);
  check_same_tokens(from, there, to);
  check_same_sizes(from, there.model, to.model);

  const std::string file = run_file(pretrained.folder, "model.safetensors");
  const auto hash = there.files.find("model.safetensors");
  check_tensors(file, there.step, hash == there.files.end() ? "" : hash->second, true);
  const data::MappedFile mapped(file);
  const data::Safetensors stored(file, mapped.bytes());
  Origin origin{.from = from, .step = there.step};
  origin.changed = changed_keys(there.model, to.model);
  Taking taking(there, to, origin);
  for (const NamedTensor& one : parameters) taking.take(one, stored.find(one.name));
  for (const data::StoredTensor& one : stored.tensors()) {
    bool known = false;
    for (const NamedTensor& parameter : parameters)
      known = known || parameter.name == one.name;
    if (!known) taking.pass_over(one);
  }
  taking.refuse_rest(from);
  return origin;
}

std::string origin_line(const Origin& origin) {
  return "begins with " + std::to_string(origin.taken) + " tensors of " + origin.from +
         ", step " + std::to_string(origin.step) + some_of("partly", origin.partly) +
         some_of("begun anew", origin.anew) + some_of("left there", origin.left) +
         some_of("changed", origin.changed);
}

}  // namespace lagwise
