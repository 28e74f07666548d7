#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/where.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include <algorithm>

#include "lagwise/models/model.h"
#include "lagwise/train/decoder.h"

namespace lagwise {
namespace {

int64_t length_of(const std::vector<int64_t>& tokens) {
  return static_cast<int64_t>(tokens.size());
}

/// Takes in the prompts and returns the logits after each, [B, V]; zeros after an empty
/// one.
at::Tensor read_prompts(Model& model, DecodingState& state,
                        const std::vector<std::vector<int64_t>>& prompts) {
  constexpr int64_t kChunk = 1024;
  const auto rows = static_cast<int64_t>(prompts.size());
  int64_t shortest = length_of(prompts[0]), longest = shortest;
  for (const auto& prompt : prompts) {
    shortest = std::min(shortest, length_of(prompt));
    longest = std::max(longest, length_of(prompt));
  }
  at::Tensor after = at::zeros({rows, model.config().vocabulary}, at::kFloat);
  for (int64_t begin = 0; begin < longest; begin += kChunk) {
    const int64_t count = std::min(kChunk, longest - begin);
    const at::Tensor tokens = at::zeros({rows, count}, at::kLong);
    const at::Tensor lengths = at::zeros({rows}, at::kLong);
    for (int64_t b = 0; b < rows; ++b) {
      const auto& prompt = prompts[static_cast<size_t>(b)];
      const int64_t here = std::clamp<int64_t>(length_of(prompt) - begin, 0, count);
      std::copy_n(prompt.begin() + std::min(begin, length_of(prompt)), here,
                  tokens.data_ptr<int64_t>() + b * count);
      lengths.data_ptr<int64_t>()[b] = here;
    }
    // Rows of one length need no lengths, and decode faster without.
    const at::Tensor logits =
        model.extend(state, tokens, shortest == longest ? at::Tensor() : lengths);
    after = at::where(lengths.gt(0).unsqueeze(1), logits.to(at::kFloat), after);
  }
  return after;
}

class TorchDecoder : public Decoder {
 public:
  TorchDecoder(Model& model, int64_t texts, const Draw& draw, const Batch* source)
      : model_(model), state_(model.start(texts, draw, source)) {}

  void read(const std::vector<std::vector<int64_t>>& prompts) override {
    const c10::NoGradGuard no_graph;
    logits_ = read_prompts(model_, *state_, prompts).contiguous();
  }

  /// A text that has ended takes token 0: nobody reads its logits.
  void step(const std::vector<int64_t>& tokens) override {
    const c10::NoGradGuard no_graph;
    const at::Tensor next = at::tensor(tokens, at::kLong).clamp_min(0).unsqueeze(1);
    logits_ = model_.extend(*state_, next).to(at::kFloat).contiguous();
  }

  std::span<const float> logits(size_t text) const override {
    const auto width = static_cast<size_t>(logits_.size(1));
    return {logits_.data_ptr<float>() + text * width, width};
  }

  int64_t state_bytes() const override { return state_->bytes(); }

 private:
  Model& model_;
  std::unique_ptr<DecodingState> state_;
  at::Tensor logits_;  // [B, V]
};

}  // namespace

std::unique_ptr<Decoder> torch_decoder(Model& model, int64_t texts, const Draw& draw,
                                       const Batch* source) {
  return std::make_unique<TorchDecoder>(model, texts, draw, source);
}

}  // namespace lagwise
