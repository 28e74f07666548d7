#include "lagwise/nn/block.h"

#include <ATen/TensorOperators.h>

#include <cmath>

#include "lagwise/nn/dropout.h"

namespace lagwise::nn {

Block::Block(const BlockConfig& config, std::shared_ptr<Encoding> encoding,
             Initial& initial, const AttentionConfig* cross,
             std::shared_ptr<Encoding> cross_encoding)
    : pre_norm_(config.pre_norm), place_(initial.next) {
  const int64_t dim = config.self.dim;
  const auto norm = [&](const char* name) {
    return register_module(name, std::make_shared<Norm>(config.norm, dim));
  };
  attn_norm_ = norm("attn_norm");
  attn_ = register_module("attn", std::make_shared<MultiHeadAttention>(
                                      config.self, std::move(encoding), initial));
  if (cross != nullptr) {
    cross_norm_ = norm("cross_norm");
    cross_ = register_module("cross", std::make_shared<MultiHeadAttention>(
                                          *cross, std::move(cross_encoding), initial));
  }
  ff_norm_ = norm("ff_norm");
  const double gain = 1.0 / std::sqrt(2.0 * static_cast<double>(config.self.layers));
  ff_in_ = register_module(
      "ff_in", std::make_shared<LinearLayer>(dim, config.feed_forward, initial));
  ff_out_ = register_module(
      "ff_out", std::make_shared<LinearLayer>(config.feed_forward, dim, initial, gain));
}

at::Tensor Block::add(const at::Tensor& x, const std::shared_ptr<Norm>& norm,
                      const Pass& pass, int64_t which, const Inner& inner) const {
  const ops::InputNorm before = pre_norm_ ? norm->before_layer() : ops::InputNorm{};
  const bool apart = pre_norm_ && !before.gain.defined();
  const at::Tensor y = apart ? norm->forward(x) : x;
  const at::Tensor sum = pass.dropout == 0
                             ? inner(y, before, x)
                             : x + dropout(inner(y, before, {}), pass, place_ + which);
  return pre_norm_ ? sum : norm->forward(sum);
}

at::Tensor Block::feed_forward(const at::Tensor& y, const ops::InputNorm& norm,
                               const at::Tensor& start) const {
  return ops::feed_forward(y, ff_in_->weights(), ff_out_->weights(), start, norm);
}

at::Tensor Block::forward(at::Tensor x, const Pass& pass, const at::Tensor& other,
                          const Pass* cross_pass) {
  x = add(x, attn_norm_, pass, 0,
          [&](const auto& y, const auto& norm, const auto& start) {
            return attn_->forward(y, y, pass, norm, start);
          });
  if (cross_)
    x = add(x, cross_norm_, pass, 1,
            [&](const auto& y, const auto& norm, const auto& start) {
              return cross_->forward(y, other, *cross_pass, norm, start);
            });
  return add(x, ff_norm_, pass, 2,
             [&](const auto& y, const auto& norm, const auto& start) {
               return feed_forward(y, norm, start);
             });
}

BlockState Block::start(int64_t batch, const at::Tensor& other,
                        const Pass* cross_pass) const {
  BlockState state{attn_->start(batch), nullptr};
  if (cross_) state.heard = cross_->listen(other, *cross_pass);
  return state;
}

at::Tensor Block::extend(BlockState& state, at::Tensor x, const Pass& pass,
                         const Pass* cross_pass) {
  x = add(x, attn_norm_, pass, 0,
          [&](const auto& y, const auto& norm, const auto& start) {
            return attn_->extend(*state.self, y, pass, norm, start);
          });
  if (cross_)
    x = add(x, cross_norm_, pass, 1,
            [&](const auto& y, const auto& norm, const auto& start) {
              return cross_->ask(*state.heard, y, *cross_pass, norm, start);
            });
  return add(x, ff_norm_, pass, 2,
             [&](const auto& y, const auto& norm, const auto& start) {
               return feed_forward(y, norm, start);
             });
}

}  // namespace lagwise::nn
