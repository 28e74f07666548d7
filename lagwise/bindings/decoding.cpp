// Models that write: a state that takes tokens and gives logits, and whole continuations.

#include <ATen/core/grad_mode.h>
#include <ATen/ops/tensor.h>
#include <torch/custom_class.h>
#include <torch/library.h>

#include <stdexcept>

#include "lagwise/bindings/lent_model.h"
#include "lagwise/ops/torch_names.h"
#include "lagwise/tasks/task.h"
#include "lagwise/train/generation.h"

namespace lagwise::bindings {
namespace {

using at::Tensor;
using Tensors = std::vector<Tensor>;

Draw draw_of(int64_t seed, int64_t step) {
  Draw draw;
  draw.seed = static_cast<uint64_t>(seed), draw.step = step;
  return draw;
}

/// What a model remembers of a batch of texts, with the model that reads on:
///
///     d = torch.classes.lagwise_bindings.Decoding(config, parameters, batch, seed, step)
///     logits [B, N, V] = d.extend_all(tokens [B, N])
///     logits [B, V]    = d.extend(tokens [B, N], lengths [B] or None)
class Decoding : public torch::CustomClassHolder {
 public:
  Decoding(const std::string& config, const Tensors& parameters, int64_t batch,
           int64_t seed, int64_t step)
      : model_(lent_model(model_config(config), parameters)),
        state_(model_->start(batch, draw_of(seed, step))) {}

  Tensor extend(const Tensor& tokens, const ops::Optional<Tensor>& lengths) {
    const at::NoGradGuard no_graph;
    return model_->extend(*state_, tokens, lengths ? *lengths : Tensor());
  }

  Tensor extend_all(const Tensor& tokens) {
    const at::NoGradGuard no_graph;
    return model_->extend_all(*state_, tokens);
  }

  int64_t bytes() const { return state_->bytes(); }

  void reorder(const Tensor& order) { state_->reorder(order); }

 private:
  std::shared_ptr<Model> model_;
  std::unique_ptr<DecodingState> state_;
};

/// What the tokens of a task stand for; null: nothing.
std::unique_ptr<TokenText> text_of(const std::string& task,
                                   const std::vector<std::string>& words) {
  return task.empty() ? nullptr : make_token_text(task, words);
}

std::vector<int64_t> encode_text(std::string task, std::vector<std::string> words,
                                 std::string text) {
  return text_of(task, words)->encode(text);
}

/// As bytes: what a model writes need not be UTF-8.
Tensor decode_text(std::string task, std::vector<std::string> words,
                   std::vector<int64_t> tokens) {
  const std::string text = text_of(task, words)->decode(tokens);
  return at::tensor(std::vector<uint8_t>(text.begin(), text.end()), at::kByte);
}

/// One continuation of each prompt, of different lengths where one ends early.
Tensors continue_texts(std::string config, Tensors parameters, std::string task,
                       std::vector<std::string> words, Tensors prompts, int64_t length,
                       double temperature, int64_t top_k, double top_p, double min_p,
                       double repetition_penalty, int64_t repetition_window,
                       int64_t seed, int64_t draw_seed, int64_t draw_step) {
  const at::NoGradGuard no_graph;
  Writing writing;
  for (const Tensor& prompt : prompts) {
    const Tensor one = prompt.to(at::kLong).contiguous();
    const auto* first = one.data_ptr<int64_t>();
    writing.prompts.emplace_back(first, first + one.numel());
  }
  writing.length = length;
  Sampling& sampling = writing.sampling;
  sampling.temperature = temperature, sampling.top_k = top_k, sampling.top_p = top_p;
  sampling.min_p = min_p, sampling.repetition_penalty = repetition_penalty;
  sampling.repetition_window = repetition_window;
  sampling.seed = static_cast<uint64_t>(seed);
  check(sampling);
  const auto text = text_of(task, words);
  const auto model = lent_model(model_config(config), parameters);
  const Written written =
      write_on(*model, text.get(), draw_of(draw_seed, draw_step), writing);
  Tensors texts;
  for (const auto& tokens : written.tokens)
    texts.push_back(at::tensor(tokens, at::kLong));
  return texts;
}

}  // namespace

TORCH_LIBRARY_FRAGMENT(lagwise_bindings, m) {
  m.class_<Decoding>("Decoding")
      .def(torch::init<std::string, Tensors, int64_t, int64_t, int64_t>())
      .def("extend", &Decoding::extend)
      .def("extend_all", &Decoding::extend_all)
      .def("bytes", &Decoding::bytes)
      .def("reorder", &Decoding::reorder);
  m.def("encode_text(str task, str[] words, str text) -> int[]", encode_text);
  m.def("decode_text(str task, str[] words, int[] tokens) -> Tensor", decode_text);
  m.def(
      "continue_texts(str config, Tensor[] parameters, str task, str[] words, "
      "Tensor[] "
      "prompts, int length, float temperature, int top_k, float top_p, float min_p, "
      "float repetition_penalty, int repetition_window, int seed, int draw_seed, int "
      "draw_step) -> Tensor[]",
      continue_texts);
}

}  // namespace lagwise::bindings
