#include "lagwise/runtime/state.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/fnv1a.h"

namespace lagwise::runtime {
namespace {

constexpr std::align_val_t kAlignment{64};
constexpr std::string_view kMagic = "lagwise state 1\n";

int64_t round_up(int64_t n) { return (n + 15) / 16 * 16; }

std::string_view text_at(const void* memory, size_t size) {
  return {static_cast<const char*>(memory), size};
}

}  // namespace

StateLayout::StateLayout(const Plan& plan)
    : heads_(plan.heads),
      values_(plan.value_dim),
      vocabulary_(plan.vocabulary),
      logits_(kRecentTokens),
      size_(kRecentTokens + round_up(plan.vocabulary)),
      most_positions_(runtime::most_positions(plan)) {
  for (const OneTokenLayer& layer : plan.one.layers) {
    const LayerWidths w = widths_of(plan, layer);
    const int64_t rows = std::max<int64_t>(0, layer.memory.convolution - 1);
    Layer to{};
    to.recent = size_;
    to.heads = to.recent + round_up(rows * plan.mixed_columns());
    to.rows = w.state, to.norm = w.norm;
    to.head_size = round_up(w.state * plan.value_dim + w.norm + 1);
    size_ = to.heads + heads_ * to.head_size;
    layers_.push_back(to);
  }
}

std::vector<int64_t> StateLayout::maxima() const {
  std::vector<int64_t> places;
  for (const Layer& layer : layers_)
    for (int64_t h = 0; h < heads_; ++h)
      places.push_back(layer.heads + h * layer.head_size + layer.rows * values_ +
                       layer.norm);
  return places;
}

void State::Free::operator()(std::byte* memory) const {
  ::operator delete[](memory, kAlignment);
}

State::State(const StateLayout& layout, uint64_t fingerprint) : layout_(&layout) {
  memory_.reset(static_cast<std::byte*>(::operator new[](bytes(), kAlignment)));
  std::memset(memory_.get(), 0, bytes());
  header().fingerprint = fingerprint;
  for (const int64_t place : layout.maxima())
    floats()[place] = -std::numeric_limits<float>::infinity();
}

State::State(const State& other) : layout_(other.layout_) {
  memory_.reset(static_cast<std::byte*>(::operator new[](bytes(), kAlignment)));
  std::memcpy(memory_.get(), other.memory_.get(), bytes());
}

void State::take(int64_t token) {
  const auto id = static_cast<int32_t>(token);
  std::memcpy(floats() + position() % StateLayout::kRecentTokens, &id, sizeof id);
  ++header().position;
}

void State::recent_tokens(int64_t count, std::vector<int64_t>& to) const {
  count = std::min({count, position(), StateLayout::kRecentTokens});
  for (int64_t p = position() - count; p < position(); ++p) {
    int32_t id = 0;
    std::memcpy(&id, floats() + p % StateLayout::kRecentTokens, sizeof id);
    to.push_back(id);
  }
}

std::string State::saved() const {
  std::string text(kMagic);
  text += text_at(memory_.get(), bytes());
  const uint64_t hash = data::fnv1a(data::bytes_of(text));
  return text += text_at(&hash, sizeof hash);
}

std::unique_ptr<State> State::from_saved(const std::string& file, std::string_view text,
                                         const StateLayout& layout,
                                         uint64_t fingerprint) {
  uint64_t hash = 0;
  if (!text.starts_with(kMagic))
    throw DataError(file, 0, "a state as lagwise saves it");
  if (text.size() < kMagic.size() + kHeaderBytes + sizeof hash)
    throw DataError(file, static_cast<int64_t>(text.size()), "a whole state");
  const std::string_view body = text.substr(0, text.size() - sizeof hash);
  std::memcpy(&hash, text.data() + body.size(), sizeof hash);
  if (hash != data::fnv1a(data::bytes_of(body)))
    throw DataError(file, -1, "a whole state; its checksum says it is damaged");
  Header header{};
  std::memcpy(&header, text.data() + kMagic.size(), sizeof header);
  if (header.fingerprint != fingerprint ||
      body.size() != kMagic.size() + state_bytes(layout))
    throw DataError(file, -1, "a state of this model, got one of another");
  if (header.position < 0 || header.position > layout.most_positions())
    throw DataError(file, -1,
                    "a position from 0 to " + std::to_string(layout.most_positions()));
  auto state = std::make_unique<State>(layout, fingerprint);
  std::memcpy(state->memory_.get(), text.data() + kMagic.size(), state->bytes());
  std::vector<int64_t> tokens;
  state->recent_tokens(StateLayout::kRecentTokens, tokens);
  for (const int64_t token : tokens)
    if (token < 0 || token >= layout.vocabulary())
      throw DataError(file, -1, "tokens of the vocabulary");
  return state;
}

size_t state_bytes(const StateLayout& layout) {
  return 64 + static_cast<size_t>(layout.size()) * sizeof(float);
}

}  // namespace lagwise::runtime
