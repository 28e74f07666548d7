// Attention joined with an encoding, heads in and heads out.
//
//     q [B, H, N, D], k [B, H, M, D], v [B, H, M, E]
//     log_decay, write_strength [B, H, M]    gates, where the attention has them
//     lengths, key_lengths [B]               padding at the end
//     s, z, m                                with "state": what came before, as the
//                                            call before returned it
//     -> out [B, H, N, E], and with "state" the next s, z, m
//
// bf16 and f16 are computed in f32.

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <stdexcept>

#include "lagwise/bindings/part.h"
#include "lagwise/bindings/placed_encoding.h"
#include "lagwise/nn/attention_presets.h"
#include "lagwise/nn/mixer.h"
#include "lagwise/ops/rms_norm.h"

namespace lagwise::bindings {
namespace {

bool is_short(const at::Tensor& x) {
  return x.scalar_type() == at::kBFloat16 || x.scalar_type() == at::kHalf;
}

at::Tensor widened_rows(const at::Tensor& x) {
  return x.defined() && is_short(x) ? x.to(at::kFloat) : x;
}

at::Tensor plus_row(const at::Tensor& x, const at::Tensor& bias) {
  return bias.defined() ? x + bias.unsqueeze(1).to(x.scalar_type()) : x;
}

class AttentionPart : public Part {
 public:
  explicit AttentionPart(const Json& config)
      : placed_(config), keeps_state_(entry(config, "state", false)) {
    const nn::MixerPlace place{placed_.shape, placed_.layer.index, placed_.layer.count,
                               placed_.causal};
    mixer_ = nn::make_mixer(placed_.attention, place, placed_.text, placed_.encoding,
                            placed_.layer);
  }

  /// pos.* of the encoding, then those of the attention itself.
  Parameters parameters() const override {
    Parameters all = placed_.parameters("pos.");
    for (const auto& own : mixer_->parameters()) all.push_back(own);
    return all;
  }

  std::vector<at::Tensor> call(const Inputs& inputs) override {
    const at::Tensor q = inputs.need("q");
    const nn::RowBias bias = mixer_->row_bias();
    const nn::HeadRows rows{plus_row(widened_rows(q), bias.q),
                            plus_row(widened_rows(inputs.need("k")), bias.k),
                            widened_rows(inputs.need("v")),
                            widened_rows(inputs["log_decay"]),
                            widened_rows(inputs["write_strength"])};
    check_gates(rows);
    const nn::Pass pass = placed_.pass(inputs, rows.q.size(2), rows.k.size(2));
    std::vector<at::Tensor> results =
        keeps_state_ ? extend(inputs, rows, pass)
                     : std::vector<at::Tensor>{mixer_->mix(rows, pass)};
    results[0] = normed(results[0]).to(q.scalar_type());
    return results;
  }

  Json facts() const override {
    const MemoryOptions memory = mixer_->memory();
    Json facts = placed_.facts();
    facts["text"] = nn::expand_preset(placed_.attention);
    facts["forgets"] = memory.forgets, facts["rewrites"] = memory.rewrites;
    facts["convolution"] = memory.convolution;
    facts["gates_output"] = memory.gates_output;
    facts["query_gain"] = mixer_->query_gain();
    facts["draws"] = mixer_->draws();
    facts["state"] = state_sizes();
    return facts;
  }

 private:
  void check_gates(const nn::HeadRows& rows) const {
    const auto check = [](const char* name, const char* option, bool asked,
                          const at::Tensor& given) {
      if (asked == given.defined()) return;
      throw std::invalid_argument(std::string(name) + " [B, H, M]: expected " +
                                  (asked ? "one" : "none") + " with attention " +
                                  (asked ? "" : "without ") + option);
    };
    check("log_decay", "forget=gated", mixer_->memory().forgets, rows.log_decay);
    check("write_strength", "write=delta", mixer_->memory().rewrites,
          rows.write_strength);
  }

  /// From the state that is given, which stays as it is.
  std::vector<at::Tensor> extend(const Inputs& inputs, const nn::HeadRows& rows,
                                 const nn::Pass& pass) const {
    const auto memory = mixer_->start(rows.q.size(0));
    ops::LinearState* state = memory->constant_size();
    if (state == nullptr)
      throw std::invalid_argument(
          "expected attention whose state has a constant size, got " +
          placed_.attention + " with " + placed_.text);
    const auto begin = [&](at::Tensor& to, const char* name) {
      const at::Tensor from = inputs[name];
      if (from.defined() && from.dim() > 1) to = from.clone();  // a step writes into it
    };
    begin(state->s, "s"), begin(state->z, "z"), begin(state->m, "m");
    std::vector<at::Tensor> results = {mixer_->extend(*memory, rows, pass)};
    if (state->m.defined() && state->m.numel() == 0) state->m = at::Tensor();
    for (const at::Tensor& one : {state->s, state->z, state->m})
      results.push_back(one.defined() ? one : at::empty({0}, rows.q.options()));
    return results;
  }

  /// Of one sequence; null where there is no state of constant size.
  Json state_sizes() const {
    const at::NoGradGuard no_graph;
    const HeadShape& shape = placed_.shape;
    if (!placed_.causal || mixer_->start(1)->constant_size() == nullptr) return nullptr;
    const at::Tensor row = at::zeros({1, shape.heads, 1, shape.dim}, at::kFloat);
    const at::Tensor gate = at::zeros({1, shape.heads, 1}, at::kFloat);
    nn::HeadRows rows{row, row,
                      row.new_zeros({1, shape.heads, 1, shape.value_width()})};
    if (mixer_->memory().forgets) rows.log_decay = gate;
    if (mixer_->memory().rewrites) rows.write_strength = gate;
    const Inputs nothing({}, {});
    Json sizes = Json::array();
    for (const at::Tensor& one : extend(nothing, rows, placed_.pass(nothing, 1, 1)))
      sizes.push_back(one.sizes().vec());
    sizes.erase(sizes.begin());
    return sizes;
  }

  /// With the norm of heads that a mixer leaves to the layer around it.
  at::Tensor normed(const at::Tensor& out) const {
    const ops::InputNorm norm = mixer_->head_norm();
    if (!norm.gain.defined()) return out;
    return ops::rms_norm(out.transpose(1, 2), norm.gain.to(out.scalar_type()), norm.eps)
        .transpose(1, 2);
  }

  PlacedEncoding placed_;
  bool keeps_state_;
  std::unique_ptr<nn::Mixer> mixer_;
};

const RegisterPart attention_part_registered({
    .name = "attention",
    .make = [](const Json& config) -> std::unique_ptr<Part> {
      return std::make_unique<AttentionPart>(config);
    },
});

}  // namespace
}  // namespace lagwise::bindings
