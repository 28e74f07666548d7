#include "lagwise/models/model.h"

#include <ATen/TensorOperators.h>

#include <stdexcept>

#include "lagwise/core/layer_texts.h"
#include "lagwise/core/registry.h"
#include "lagwise/encodings/encoding.h"
#include "lagwise/nn/mixer.h"
#include "lagwise/ops/cross_entropy.h"

namespace lagwise {
namespace {

Registry<ModelRow>& registry() {
  static Registry<ModelRow> registry("model");
  return registry;
}

[[noreturn]] void refuse_decoding(const ModelConfig& config) {
  std::string names;
  for (const ModelRow& row : registry().rows())
    if (row.generates()) names += (names.empty() ? "" : " or ") + std::string(row.name);
  throw std::invalid_argument("model '" + config.model +
                              "' does not generate; expected " + names);
}

void check(const ModelConfig& config, const ModelRow& row) {
  const auto expect = [&](bool holds, const std::string& what, int64_t got) {
    if (!holds)
      throw std::invalid_argument("model." + what + ", got " + std::to_string(got));
  };
  expect(config.layers >= 1, "layers: expected at least 1", config.layers);
  expect(config.vocabulary >= 1, "vocabulary: expected at least 1", config.vocabulary);
  expect(config.heads >= 1, "heads: expected at least 1", config.heads);
  expect(config.key_dim >= 0, "key_dim: expected 0 (dim / heads) or more",
         config.key_dim);
  expect(config.value_dim >= 0, "value_dim: expected 0 (dim / heads) or more",
         config.value_dim);
  const bool own_widths = config.key_dim > 0 && config.value_dim > 0;
  expect(config.dim >= 1 && (own_widths || config.dim % config.heads == 0),
         "dim: expected a multiple of heads = " + std::to_string(config.heads),
         config.dim);
  expect(config.feed_forward >= 0, "feed_forward: expected 0 (4 dim) or more",
         config.feed_forward);
  expect(config.patch == 1 || (config.patch > 1 && row.joins_patches),
         "patch: expected 1, or more for a classifier", config.patch);
  if (!(config.dropout >= 0 && config.dropout < 1))
    throw std::invalid_argument("model.dropout: expected 0 <= dropout < 1, got " +
                                std::to_string(config.dropout));
}

}  // namespace

Loss cross_entropy(const at::Tensor& logits, const at::Tensor& targets) {
  const ops::CrossEntropy found = ops::cross_entropy(logits, targets);
  Loss loss;
  loss.sum = found.sum;
  loss.by_target = found.each;
  loss.count = targets.ge(0).sum().item<int64_t>();
  loss.right = found.right;
  return loss;
}

Loss Model::loss(const Batch& batch, const Draw& draw) {
  return cross_entropy(logits(batch, draw), batch.targets);
}

OneTokenModel Model::one_token(const Draw&) const {
  throw std::invalid_argument(
      "expected a model that continues a text, decoder_lm, got " + config_.model);
}

std::unique_ptr<DecodingState> Model::start(int64_t, const Draw&, const Batch*) {
  refuse_decoding(config_);
}

at::Tensor Model::extend(DecodingState&, const at::Tensor&, const at::Tensor&) {
  refuse_decoding(config_);
}

at::Tensor Model::extend_all(DecodingState&, const at::Tensor&) {
  refuse_decoding(config_);
}

at::Tensor Model::logits_after(DecodingState&, const at::Tensor&) {
  refuse_decoding(config_);
}

RegisterModel::RegisterModel(ModelRow row) { registry().add(row); }

const std::vector<ModelRow>& models() { return registry().rows(); }

const ModelRow& model_row(std::string_view name) { return registry().find(name); }

void check_names(const ModelConfig& config) {
  const auto each_layer = [&](const std::string& key, const std::string& texts,
                              const auto& find) {
    const auto layers = texts_by_layer(key, texts, config.layers);
    try {
      for (const std::string& text : layers) find(text);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(key + ": " + error.what());
    }
  };
  each_layer("model.attention", config.attention,
             [](const std::string& text) { nn::mixer_row(text); });
  each_layer("model.encoding", config.encoding,
             [](const std::string& text) { encoding_row(Spec(text).name()); });
}

std::shared_ptr<Model> make_model(const ModelConfig& config) {
  const ModelRow& row = model_row(config.model);
  check(config, row);
  return row.make(config);
}

}  // namespace lagwise
