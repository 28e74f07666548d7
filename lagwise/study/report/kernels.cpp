// What the encoding of each run makes of the lag after training, for `lagwise report`.

#include <ATen/core/Tensor.h>
#include <ATen/ops/allclose.h>
#include <ATen/ops/ones_like.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "lagwise/core/layer_texts.h"
#include "lagwise/models/layer_encodings.h"
#include "lagwise/models/model.h"
#include "lagwise/study/report/kernel_chart.h"
#include "lagwise/study/report/page.h"
#include "lagwise/train/run.h"

namespace lagwise {
namespace {

constexpr int kDraws = 8;            // of encodings with noise
constexpr int64_t kMostLags = 8192;  // however long the training length

/// Gives `parameters` the values a model trained; false: it has none of that name.
bool take(Model& model, const std::string& prefix, const Parameters& parameters) {
  const auto trained = model.named_parameters();
  for (const auto& [name, tensor] : parameters) {
    const at::Tensor* found = trained.find(prefix + name);
    if (!found || found->sizes() != tensor.sizes()) return false;
    tensor.detach().copy_(found->detach());
  }
  return true;
}

/// As far as an encoding reaches, 4 training lengths at most: tables end before.
std::optional<Kernel> kernel_as_far(Encoding& encoding, const Layer& layer,
                                    const Run& run) {
  const int64_t trained = run.model->config().length;
  for (const int64_t k : {4, 2, 1}) {
    try {
      return kernel_of(encoding, layer, run.draw(), kDraws,
                       std::min(kMostLags, k * trained));
    } catch (const std::exception&) {  // past its table
    }
  }
  return std::nullopt;
}

LayerEncodings encodings_of(const ModelConfig& config) {
  return {texts_by_layer("model.encoding", config.encoding, config.layers),
          texts_by_layer("model.attention", config.attention, config.layers),
          {.heads = config.heads,
           .dim = config.key_width(),
           .model_dim = config.dim,
           .value_dim = config.value_width(),
           .seed = config.seed}};
}

/// One tab a layer; one in all where layers do not differ. Empty: nothing to show.
report::Charts kernel_card(const std::string& name, const Run& run) {
  report::Charts card{{}, true};
  const ModelConfig& config = run.model->config();
  const LayerEncodings encodings = encodings_of(config);
  for (size_t i = 0; i < encodings.all().size(); ++i)
    if (!take(*run.model, LayerEncodings::prefix(i), encodings.all()[i]->shared()))
      return card;
  at::Tensor before;
  for (int64_t i = 0; i < config.layers; ++i) {
    Encoding& encoding = *encodings.of(static_cast<size_t>(i));
    const Layer layer{i, config.layers, encoding.layer(i, config.layers)};
    if (!take(*run.model, fmt::format("layers.{}.attn.pos.", i), layer.own)) break;
    const auto kernel = kernel_as_far(encoding, layer, run);
    if (!kernel || at::allclose(kernel->mean, at::ones_like(kernel->mean))) continue;
    if (before.defined() && before.sizes() == kernel->mean.sizes() &&
        at::allclose(before, kernel->mean))
      continue;
    before = kernel->mean;
    report::Chart chart = kernel_chart(name, *kernel, config.length);
    chart.tab = fmt::format("layer {}", i);
    if (kernel->draws > 1)
      chart.note = fmt::format(
          "Mean of {} draws of its noise; bands: one standard "
          "deviation over draws.",
          kernel->draws);
    card.tabs.push_back(std::move(chart));
  }
  return card;
}

}  // namespace

report::Section kernels_section(const std::vector<RunRecord>& runs) {
  report::Section section{"What the encodings learned",
                          "The weight each head gives to a lag: the scores of queries "
                          "and keys that are all one vector, so that without positions "
                          "every one would be 1.",
                          {}};
  const c10::InferenceMode no_graph;
  for (const RunRecord& run : runs) {
    try {
      const Run opened = open_run(run.files.folder, Which::best, "", false);
      report::Charts card = kernel_card(run.name, opened);
      if (!card.tabs.empty()) section.blocks.push_back(std::move(card));
    } catch (const std::exception&) {  // no checkpoint yet, or what is none
    }
  }
  return section;
}

}  // namespace lagwise
