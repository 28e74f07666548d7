// A whole model:
//
//     tokens [B, N], lengths [B]; source [B, M], source_lengths [B] where it listens
//     -> logits [B, N, V], or [B, classes]
//
// Its config is that of a checkpoint's state.json, with "part" and "training" beside it.

#include "lagwise/bindings/lent_model.h"
#include "lagwise/bindings/part.h"
#include "lagwise/models/model.h"

namespace lagwise::bindings {
namespace {

class ModelPart : public Part {
 public:
  explicit ModelPart(const Json& config) : model_(make_model(model_config(config))) {
    model_->train(entry(config, "training", false));
  }

  Parameters parameters() const override { return parameters_of(*model_); }

  std::vector<at::Tensor> call(const Inputs& inputs) override {
    Batch batch;
    batch.tokens = inputs.need("tokens"), batch.lengths = inputs["lengths"];
    batch.source = inputs["source"], batch.source_lengths = inputs["source_lengths"];
    return {model_->logits(batch, inputs.draw())};
  }

  Json facts() const override {
    const ModelRow& row = model_row(model_->config().model);
    return {{"continues", row.continues},
            {"listens", row.listens},
            {"outputs",
             row.generates() ? model_->config().vocabulary : model_->config().classes}};
  }

 private:
  std::shared_ptr<Model> model_;
};

const RegisterPart model_part_registered({
    .name = "model",
    .make = [](const Json& config) -> std::unique_ptr<Part> {
      return std::make_unique<ModelPart>(config);
    },
});

}  // namespace
}  // namespace lagwise::bindings
