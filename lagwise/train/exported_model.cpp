#include "lagwise/train/exported_model.h"

#include <ATen/ops/cat.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/zeros.h>

#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/strict_json.h"
#include "lagwise/models/model.h"

namespace lagwise {
namespace {

using at::Tensor;
using OrderedJson = nlohmann::ordered_json;

/// The parameters of a model by name, and where they go.
class ModelExporter {
 public:
  ModelExporter(const Model& model, const runtime::Plan& plan, runtime::ModelWriter& to)
      : plan_(plan), to_(to) {
    for (const auto& each : model.named_parameters())
      by_name_[each.key()] = each.value().detach().to(at::kFloat).contiguous();
  }

  void run() {
    dense("embed", at("embed.weight"), {});
    if (!plan_.tied) dense("head", at("head.out.weight"), at("head.out.bias"));
    norm("norm", "norm");
    for (size_t i = 0; i < plan_.one.layers.size(); ++i)
      layer("layers." + std::to_string(i) + ".", plan_.one.layers[i].memory);
  }

 private:
  /// Undefined: there is none.
  Tensor at(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? Tensor() : found->second;
  }

  void dense(const std::string& name, const Tensor& weight, const Tensor& bias,
             bool whole = false) {
    const MatView<const float> w{weight.data_ptr<float>(), weight.size(0),
                                 weight.size(1), weight.size(1)};
    to_.dense(name, w, bias.defined() ? bias.data_ptr<float>() : nullptr, whole);
  }

  void dense_of(const std::string& name, const std::string& from) {
    dense(name, at(from + ".weight"), at(from + ".bias"));
  }

  void floats(const std::string& name, const Tensor& x) {
    const Tensor dense = x.contiguous();
    const float* const first = dense.data_ptr<float>();
    to_.floats(name, dense.sizes().vec(), {first, first + dense.numel()});
  }

  void norm(const std::string& name, const std::string& from) {
    floats(name + ".weight", at(from + ".weight"));
    if (plan_.norm == "layer") floats(name + ".bias", at(from + ".bias"));
  }

  void layer(const std::string& name, const OneTokenMemory& memory) {
    const std::string attn = name + "attn.";
    norm(name + "attention_norm", name + "attn_norm");
    norm(name + "feed_norm", name + "ff_norm");
    std::vector<Tensor> weights, biases, taps;
    for (const char* part : {"q", "k", "v"}) {
      weights.push_back(at(attn + part + "_proj.weight"));
      biases.push_back(at(attn + part + "_proj.bias"));
      if (memory.convolution > 0) taps.push_back(at(attn + part + "_conv.taps"));
    }
    if (memory.gates_output) {
      weights.push_back(at(attn + "gate_proj.weight"));
      biases.push_back(at(attn + "gate_proj.bias"));
    }
    dense(name + "mixed", at::cat(weights), at::cat(biases));
    if (memory.convolution > 0) floats(name + "taps", at::cat(taps, 1));
    gates(name, attn, memory);
    dense_of(name + "out", attn + "out_proj");
    dense_of(name + "feed_in", name + "ff_in");
    dense_of(name + "feed_out", name + "ff_out");
  }

  /// The rows of the forget gate, then those of the write gate, zeros where there is
  /// none. They decide over the whole past, and are few: they stay f32.
  void gates(const std::string& name, const std::string& attn,
             const OneTokenMemory& memory) {
    if (!memory.forgets && !memory.rewrites) return;
    const Tensor nothing = at::zeros({plan_.heads, plan_.dim}, at::kFloat);
    const Tensor none = at::zeros({plan_.heads}, at::kFloat);
    dense(name + "gates",
          at::cat({memory.forgets ? at(attn + "forget.weight") : nothing,
                   memory.rewrites ? at(attn + "write.weight") : nothing}),
          at::cat({memory.forgets ? at(attn + "forget.beta") : none, none}), true);
    if (memory.forgets) floats(name + "forget_rate", at(attn + "forget.rho").exp());
  }

  const runtime::Plan& plan_;
  runtime::ModelWriter& to_;
  std::map<std::string, Tensor> by_name_;
};

runtime::Plan runtime_plan(const Model& model, const Draw& draw,
                           kernels::WeightType weights) {
  const ModelConfig& config = model.config();
  runtime::Plan plan;
  plan.vocabulary = config.vocabulary, plan.dim = config.dim, plan.heads = config.heads;
  plan.key_dim = config.key_width(), plan.value_dim = config.value_width();
  plan.feed_forward = config.feed_forward > 0 ? config.feed_forward : 4 * config.dim;
  plan.norm = config.norm, plan.pre_norm = config.pre_norm, plan.tied = config.tied;
  plan.weights = weights;
  plan.one = model.one_token(draw);
  return plan;
}

}  // namespace

runtime::ModelWriter exported_model(const Model& model, const Draw& draw,
                                    kernels::WeightType weights) {
  const runtime::Plan plan = runtime_plan(model, draw, weights);
  runtime::ModelWriter writer(plan);
  ModelExporter(model, plan, writer).run();
  return writer;
}

runtime::ModelWriter exported_run(const Run& run, kernels::WeightType weights) {
  runtime::ModelWriter writer = exported_model(*run.model, run.draw(), weights);
  writer.text("words",
              OrderedJson{{"task", run.recipe.data.task}, {"words", run.words}}.dump());
  if (!run.tokenizer.empty()) writer.text("tokenizer", run.tokenizer);
  writer.text("recipe", recipe_text(run.recipe));
  writer.text("step", std::to_string(run.step));
  return writer;
}

Run run_of_exported(const std::string& file, const runtime::Model& model) {
  Run run;
  run.folder = file;
  try {
    run.recipe = parse_kept_recipe(file, model.text("recipe"));
    run.step = std::stoll(model.text("step"));
    const nlohmann::json words =
        data::parse_strict_json(file, 0, data::bytes_of(model.text("words")));
    words.at("words").get_to(run.words);
    run.tokenizer = model.text("tokenizer");
  } catch (const std::exception& error) {
    throw DataError(
        file, -1,
        "what `lagwise export` writes of a run: " + std::string(error.what()));
  }
  run.recipe.model.vocabulary = model.plan().vocabulary;
  return run;
}

ModelInMemory open_in_memory(runtime::ModelWriter writer) {
  ModelInMemory made;
  made.bytes = writer.bytes();
  made.model = runtime::Model::open("the model", made.bytes);
  return made;
}

}  // namespace lagwise
