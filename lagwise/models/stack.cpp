#include "lagwise/models/stack.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/embedding.h>
#include <ATen/ops/full.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "lagwise/core/layer_texts.h"
#include "lagwise/nn/dropout.h"
#include "lagwise/nn/parameters.h"
#include "lagwise/ops/dense.h"

namespace lagwise {
namespace {

constexpr uint64_t kDecoder = 1, kCross = 2;

/// `stack`: encodings of several stacks of one model start from different parameters.
HeadShape head_shape(const ModelConfig& config, uint64_t stack) {
  return {.heads = config.heads,
          .dim = config.key_width(),
          .model_dim = config.dim,
          .value_dim = config.value_width(),
          .seed = config.seed ^ (stack << 48)};
}

void check_tokens(const at::Tensor& tokens, int64_t vocabulary) {
  if (tokens.dim() != 2 || tokens.scalar_type() != at::kLong)
    throw std::invalid_argument("expected tokens [B, N] of whole numbers");
  if (tokens.numel() == 0) return;
  const auto lowest = tokens.min().item<int64_t>(), top = tokens.max().item<int64_t>();
  if (lowest < 0 || top >= vocabulary)
    throw std::invalid_argument("expected tokens from 0 to " +
                                std::to_string(vocabulary - 1) + ", got " +
                                std::to_string(lowest < 0 ? lowest : top));
}

void check_patches(const at::Tensor& tokens, int64_t patch) {
  if (tokens.size(1) % patch != 0)
    throw std::invalid_argument("expected whole patches of " + std::to_string(patch) +
                                " numbers, got " + std::to_string(tokens.size(1)));
}

/// In cross attention an encoding must act on queries, keys or scores; one that is
/// added to the input is refused, since both inputs already have theirs.
std::shared_ptr<Encoding> make_cross_encoding(const ModelConfig& config) {
  auto made = nn::make_encoding_for(config.cross_attention, config.cross_encoding,
                                    head_shape(config, kCross));
  if (made->traits().stage == Traits::Stage::input && !made->traits().relative)
    throw std::invalid_argument(
        "model.cross_encoding: expected none or an encoding of queries, keys or "
        "scores, got '" +
        config.cross_encoding + "', which is added to an input");
  return made;
}

void check_next(const StackState& state, const at::Tensor& tokens,
                const at::Tensor& lengths) {
  const auto batch = static_cast<int64_t>(state.taken.size());
  if (tokens.dim() != 2 || tokens.size(0) != batch || tokens.size(1) < 1)
    throw std::invalid_argument(
        "expected tokens [B, N] with B = " + std::to_string(batch) + " and N >= 1");
  if (!lengths.defined()) return;
  if (lengths.dim() != 1 || lengths.size(0) != batch ||
      lengths.scalar_type() != at::kLong || lengths.min().item<int64_t>() < 0 ||
      lengths.max().item<int64_t>() > tokens.size(1))
    throw std::invalid_argument("expected lengths [B] from 0 to N = " +
                                std::to_string(tokens.size(1)));
}

}  // namespace

int64_t StackState::bytes() const {
  int64_t sum = 0;
  for (const nn::BlockState& block : blocks) {
    if (block.self) sum += block.self->bytes();
    if (block.heard) sum += block.heard->bytes();
  }
  for (const std::vector<Code>& of_encoding : codes)
    for (const Code& code : of_encoding) sum += code.bytes();
  return sum;
}

void StackState::reorder(const at::Tensor& order) {
  const auto as_it_was = [](const auto& kept) { return kept; };
  for (nn::BlockState& block : blocks) {
    if (block.self) block.self->reorder(order);
    if (block.heard) block.heard->reorder(order);
  }
  taken = nn::reordered(taken, order, as_it_was);
  for (std::vector<Code>& of_encoding : codes)
    if (of_encoding.size() > 1)
      of_encoding = nn::reordered(of_encoding, order, as_it_was);
}

Stack::Stack(const ModelConfig& config, bool causal, bool listens, nn::Initial& initial)
    : config_(config),
      causal_(causal),
      listens_(listens),
      place_(initial.next),
      attention_texts_(
          texts_by_layer("model.attention", config.attention, config.layers)),
      encoding_texts_(texts_by_layer("model.encoding", config.encoding, config.layers)),
      encodings_(encoding_texts_, attention_texts_,
                 head_shape(config, listens ? kDecoder : 0)),
      grid_(causal ? std::vector<int64_t>() : encodings_.seen_grid(config)) {
  make_embedding(initial);
  if (listens_) cross_encoding_ = make_cross_encoding(config);
  register_encodings();
  auto layers = std::make_shared<torch::nn::Module>("layers");
  register_module("layers", layers);
  for (int64_t i = 0; i < config.layers; ++i) {
    const nn::BlockConfig block = block_config(i);
    nn::AttentionConfig cross = block.self;
    cross.attention = config.cross_attention;
    cross.encoding_text = config.cross_encoding;
    cross.causal = false;
    blocks_.push_back(std::make_shared<nn::Block>(
        block, encodings_.of(static_cast<size_t>(i)), initial,
        listens_ ? &cross : nullptr, cross_encoding_));
    layers->register_module(std::to_string(i), blocks_.back());
  }
  norm_ = register_module("norm", std::make_shared<nn::Norm>(config.norm, config.dim));
}

/// What encodings share between layers: pos.* of the first, pos.1.* of the second.
void Stack::register_encodings() {
  auto all = std::make_shared<nn::Holder>(encodings_.all()[0]->shared());
  for (size_t i = 1; i < encodings_.all().size(); ++i)
    if (const Parameters shared = encodings_.all()[i]->shared(); !shared.empty())
      all->register_module(std::to_string(i), std::make_shared<nn::Holder>(shared));
  if (!all->parameters().empty()) register_module("pos", all);
  if (listens_ && !cross_encoding_->shared().empty())
    register_module("cross_pos",
                    std::make_shared<nn::Holder>(cross_encoding_->shared()));
}

nn::BlockConfig Stack::block_config(int64_t layer) const {
  const auto i = static_cast<size_t>(layer);
  nn::BlockConfig block;
  block.self.dim = config_.dim, block.self.heads = config_.heads;
  block.self.key_dim = config_.key_width();
  block.self.value_dim = config_.value_width();
  block.self.attention = attention_texts_[i];
  block.self.encoding_text = encoding_texts_[i];
  block.self.layer = layer, block.self.layers = config_.layers;
  block.self.causal = causal_;
  block.feed_forward =
      config_.feed_forward > 0 ? config_.feed_forward : 4 * config_.dim;
  block.norm = config_.norm, block.pre_norm = config_.pre_norm;
  return block;
}

void Stack::make_embedding(nn::Initial& initial) {
  if (config_.patch > 1) {
    patches_ = register_module("embed", std::make_shared<nn::LinearLayer>(
                                            config_.patch, config_.dim, initial));
    return;
  }
  const double deviation = 1.0 / std::sqrt(static_cast<double>(config_.dim));
  embed_ = initial.normal({config_.vocabulary, config_.dim}, deviation);
  register_module("embed",
                  std::make_shared<nn::Holder>(Parameters{{"weight", embed_}}));
}

at::Tensor Stack::embed(const at::Tensor& tokens) const {
  check_tokens(tokens, config_.vocabulary);
  if (config_.patch > 1) {
    check_patches(tokens, config_.patch);
    const double half = static_cast<double>(config_.vocabulary - 1) / 2;
    return patches_->forward(
        tokens.reshape({tokens.size(0), -1, config_.patch}).to(at::kFloat) / half - 1);
  }
  return at::embedding(embed_, tokens) * std::sqrt(static_cast<double>(config_.dim));
}

nn::Pass Stack::cross_pass(const Draw& draw, int64_t queries, int64_t keys) const {
  nn::Pass pass;
  pass.at = {.causal = false, .horizon = config_.length};
  pass.draw = draw;
  if (listens_) pass.code = cross_encoding_->code(pass.at, draw, queries, keys);
  return pass;
}

/// That pass with the code of each encoding.
std::vector<nn::Pass> Stack::passes_over(const nn::Pass& pass, int64_t rows) const {
  std::vector<nn::Pass> passes;
  for (const auto& encoding : encodings_.all()) {
    passes.push_back(pass);
    passes.back().code = encoding->code(pass.at, pass.draw, rows, rows);
  }
  return passes;
}

/// Tells a pass over n rows who has the others. Every rank checks where all of them
/// stand, so that none is left waiting for one that has given up.
void Stack::share(const ops::Peers& peers, nn::Pass& pass, int64_t n) const {
  if (listens_)
    throw std::invalid_argument(
        "expected a model without cross attention where ranks share a sequence, "
        "decoder_lm or classifier, got one with it");
  if (!pass.at.grid.empty())
    throw std::invalid_argument(
        "expected a sequence where ranks share one, got a grid (model.grid)");
  const at::Tensor mine = at::tensor({pass.at.query_start, n}, at::kLong);
  const at::Tensor all = peers.gather(mine);
  int64_t next = 0;
  for (int64_t p = 0; p < peers.size(); ++p) {
    const auto start = all[p][0].item<int64_t>();
    if (start != next)
      throw std::invalid_argument("expected the rows of rank " + std::to_string(p) +
                                  " to begin at position " + std::to_string(next) +
                                  ", got " + std::to_string(start));
    pass.shards.push_back(all[p][1].item<int64_t>());
    next += pass.shards.back();
  }
  pass.peers = &peers;
}

at::Tensor Stack::forward(const Batch& batch, const Draw& draw, const at::Tensor& front,
                          const at::Tensor& other) {
  at::Tensor x = embed(batch.tokens);
  const int64_t start = batch.start / config_.patch;
  nn::Pass pass;
  pass.at = {.query_start = start,
             .key_start = start,
             .causal = causal_,
             .horizon = config_.length};
  pass.first_row = batch.first_row;
  pass.at.grid = grid_;
  pass.draw = draw;
  pass.dropout = is_training() ? config_.dropout : 0;
  pass.lengths = batch.lengths;
  if (front.defined()) {
    const int64_t here = batch.is_first() ? 1 : 0;  // or it stands on rank 0
    x = at::cat({front.expand({x.size(0), 1, x.size(2)}).narrow(1, 0, here), x}, 1);
    pass.at.off_grid = pass.at.grid.empty() ? 0 : 1;
    pass.at.query_start = pass.at.key_start = start + 1 - here;
    if (batch.lengths.defined()) pass.lengths = batch.lengths + here;
  }
  const int64_t n = x.size(1);
  if (batch.is_shared()) share(*batch.peers, pass, n);
  x = nn::dropout(encodings_.embed(x, pass.at), pass, place_);
  const std::vector<nn::Pass> passes = passes_over(pass, n);
  nn::Pass cross = cross_pass(draw, n, other.defined() ? other.size(1) : 0);
  cross.key_lengths = batch.source_lengths;
  for (size_t i = 0; i < blocks_.size(); ++i)
    x = blocks_[i]->forward(x, passes[encodings_.which(i)], other, &cross);
  return norm_->forward(x);
}

std::vector<int64_t> seen_grid(const ModelConfig& config) {
  const LayerEncodings encodings(
      texts_by_layer("model.encoding", config.encoding, config.layers),
      texts_by_layer("model.attention", config.attention, config.layers),
      head_shape(config, 0));
  return encodings.seen_grid(config);
}

OneTokenModel Stack::one_token(const Draw& draw) const {
  OneTokenModel model;
  const auto say_layer = [&](size_t i) {
    try {
      model.layers.push_back(blocks_[i]->one_token(draw, config_.length));
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument("layer " + std::to_string(i) + " (" +
                                  attention_texts_[i] + ", " + encoding_texts_[i] +
                                  "): " + error.what());
    }
  };
  for (size_t i = 0; i < blocks_.size(); ++i) say_layer(i);
  for (const auto& encoding : encodings_.all())
    if (OneTokenInput input = encoding->one_token_input(); !input.empty())
      model.inputs.push_back(std::move(input));
  return model;
}

StackState Stack::start(int64_t batch, const Draw& draw, const at::Tensor& other,
                        const at::Tensor& other_lengths) {
  StackState state;
  state.draw = draw;
  state.taken.assign(static_cast<size_t>(batch), 0);
  nn::Pass cross = cross_pass(draw, 0, other.defined() ? other.size(1) : 0);
  cross.key_lengths = other_lengths;
  for (const auto& block : blocks_)
    state.blocks.push_back(block->start(batch, other, &cross));
  return state;
}

/// The pass over the next rows of each sequence, still without a code.
nn::Pass Stack::next_pass(const StackState& state, int64_t rows) const {
  const int64_t first = state.taken.empty() ? 0 : state.taken[0];
  const bool together = std::all_of(state.taken.begin(), state.taken.end(),
                                    [&](int64_t taken) { return taken == first; });
  nn::Pass pass;
  pass.at = {.query_start = first, .key_start = first, .horizon = config_.length};
  pass.draw = state.draw;
  if (together) return pass;
  const at::Tensor starts = at::tensor(state.taken, at::kLong).unsqueeze(1);
  pass.at.query_at = pass.at.key_at = starts + at::arange(rows, at::kLong);
  pass.starts = state.taken;
  return pass;
}

/// That pass with the code of each encoding, which the state keeps for the next rows.
std::vector<nn::Pass> Stack::next_passes(StackState& state, const nn::Pass& pass,
                                         int64_t rows) const {
  const bool together = pass.starts.empty();
  state.codes.resize(encodings_.all().size());
  std::vector<nn::Pass> passes(encodings_.all().size(), pass);
  for (size_t e = 0; e < passes.size(); ++e) {
    std::vector<Code>& codes = state.codes[e];
    if (codes.empty()) codes.resize(1);
    codes.resize(together ? 1 : pass.starts.size(), codes[0]);
    for (size_t i = 0; i < codes.size(); ++i) {
      const Placement at =
          together ? pass.at : nn::placement_of(pass, static_cast<int64_t>(i));
      codes[i] = encodings_.all()[e]->code(at, state.draw, rows, rows, &codes[i]);
    }
    if (together)
      passes[e].code = codes[0];
    else
      passes[e].codes = codes;
  }
  return passes;
}

/// The pass of cross attention for the same rows: its keys were taken in before.
nn::Pass Stack::next_cross_pass(const nn::Pass& pass, int64_t rows) const {
  nn::Pass cross;
  if (!listens_) return cross;
  cross.at = {.query_start = pass.at.query_start,
              .query_at = pass.at.query_at,
              .causal = false,
              .horizon = config_.length};
  cross.draw = pass.draw, cross.starts = pass.starts;
  for (size_t b = 0; b < cross.starts.size(); ++b)
    cross.codes.push_back(cross_encoding_->code(
        nn::placement_of(cross, static_cast<int64_t>(b)), cross.draw, rows, 0));
  if (cross.starts.empty())
    cross.code = cross_encoding_->code(cross.at, cross.draw, rows, 0);
  return cross;
}

at::Tensor Stack::extend(StackState& state, const at::Tensor& tokens,
                         const at::Tensor& lengths, double dropout) {
  check_next(state, tokens, lengths);
  const int64_t n = tokens.size(1);
  nn::Pass pass = next_pass(state, n);
  pass.lengths = lengths, pass.dropout = dropout;
  const nn::Pass cross = next_cross_pass(pass, n);
  const std::vector<nn::Pass> passes = next_passes(state, pass, n);
  at::Tensor x = nn::dropout(encodings_.embed(embed(tokens), pass.at), pass, place_);
  for (size_t i = 0; i < blocks_.size(); ++i)
    x = blocks_[i]->extend(state.blocks[i], x, passes[encodings_.which(i)], &cross);
  for (size_t b = 0; b < state.taken.size(); ++b)
    state.taken[b] +=
        lengths.defined() ? lengths[static_cast<int64_t>(b)].item<int64_t>() : n;
  return norm_->forward(x);
}

Head::Head(const ModelConfig& config, int64_t outputs, bool tied,
           nn::Initial& initial) {
  if (!tied)
    out_ = register_module(
        "out", std::make_shared<nn::LinearLayer>(config.dim, outputs, initial));
}

at::Tensor Head::forward(const at::Tensor& rows, const at::Tensor& embedding) const {
  return out_ ? out_->forward(rows) : ops::dense(rows, embedding);
}

void adopt(torch::nn::Module& whole, const torch::nn::Module& part) {
  for (const auto& child : part.named_children())
    whole.register_module(child.key(), child.value());
  for (const auto& own : part.named_parameters(false))
    whole.register_parameter(own.key(), own.value());
}

at::Tensor last_rows(const at::Tensor& x, const at::Tensor& lengths) {
  if (!lengths.defined()) return x.select(1, x.size(1) - 1);
  const at::Tensor place = (lengths - 1).clamp_min(0).view({-1, 1, 1});
  return x.gather(1, place.expand({x.size(0), 1, x.size(2)})).squeeze(1);
}

}  // namespace lagwise
