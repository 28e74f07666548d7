#include "lagwise/attention/kv_cache.h"

#include <ATen/ops/empty.h>

#include <algorithm>
#include <sstream>
#include <stdexcept>

#include "lagwise/ops/exact_step.h"
#include "lagwise/ops/torch_names.h"

namespace lagwise {
namespace {

[[noreturn]] void refuse(const char* expected, const at::Tensor& got) {
  std::ostringstream text;
  text << "kv_cache: expected " << expected << ", got " << got.sizes();
  throw std::invalid_argument(text.str());
}

/// A new buffer that begins with rows [first, first + length) of an old one, which may
/// be undefined.
at::Tensor moved(const at::Tensor& old, const at::Tensor& like, int64_t first,
                 int64_t length, int64_t capacity, at::ScalarType type) {
  at::Tensor to = at::empty({like.size(0), like.size(1), capacity, like.size(3)},
                            like.options().dtype(type));
  if (length > 0) to.narrow(2, 0, length).copy_(old.narrow(2, first, length));
  return to;
}

}  // namespace

KeyValueCache::KeyValueCache(at::ScalarType storage) : storage_(storage) {
  if (storage != at::kFloat && storage != at::kDouble && storage != at::kBFloat16)
    throw std::invalid_argument(
        std::string("kv_cache: expected storage Float, Double or BFloat16, got ") +
        toString(storage));
}

/// Room for more rows at the end: where at most half of the buffer would be in use, one
/// of the same size will do, else it takes one twice as large.
void KeyValueCache::reserve(int64_t more, const at::Tensor& k, const at::Tensor& v) {
  constexpr int64_t kLeast = 64;
  const int64_t length = length_ + more, old = k_.defined() ? k_.size(2) : 0;
  if (k_.defined() && first_ + length <= old) return;
  const int64_t capacity =
      std::max({length, kLeast, 2 * length <= old ? old : 2 * old});
  k_ = moved(k_, k, first_, length_, capacity, storage_);
  v_ = moved(v_, v, first_, length_, capacity, storage_);
  first_ = 0;
}

void KeyValueCache::keep_last(int64_t rows) {
  const int64_t drop = std::max<int64_t>(0, length_ - rows);
  first_ += drop, length_ -= drop, dropped_ += drop;
}

KeyValueCache KeyValueCache::copied() const {
  KeyValueCache copy = *this;
  if (k_.defined()) copy.k_ = k_.clone(), copy.v_ = v_.clone();
  return copy;
}

void KeyValueCache::reorder(const at::Tensor& order) {
  if (k_.defined()) k_ = k_.index_select(0, order), v_ = v_.index_select(0, order);
}

void KeyValueCache::append(const at::Tensor& k, const at::Tensor& v) {
  if (k.dim() != 4) refuse("k [B, H, n, D]", k);
  if (v.dim() != 4 || v.size(0) != k.size(0) || v.size(1) != k.size(1) ||
      v.size(2) != k.size(2))
    refuse("v [B, H, n, E] to match k", v);
  if (k_.defined() && (k.size(0) != k_.size(0) || k.size(1) != k_.size(1) ||
                       k.size(3) != k_.size(3) || v.size(3) != v_.size(3)))
    refuse("k and v of the batch, heads and widths seen before", k);
  reserve(k.size(2), k, v);
  k_.narrow(2, first_ + length_, k.size(2)).copy_(k.detach());
  v_.narrow(2, first_ + length_, v.size(2)).copy_(v.detach());
  length_ += k.size(2);
}

at::Tensor KeyValueCache::keys() const {
  if (!k_.defined()) throw std::invalid_argument("kv_cache: expected keys, got none");
  return k_.narrow(2, first_, length_);
}

at::Tensor KeyValueCache::values() const {
  if (!v_.defined()) throw std::invalid_argument("kv_cache: expected keys, got none");
  return v_.narrow(2, first_, length_);
}

at::Tensor KeyValueCache::step(const Encoded& encoded, ops::Optional<int64_t> window,
                               const at::Tensor& key_bias) const {
  if (encoded.q.dim() != 4 || encoded.q.size(2) != 1)
    refuse("q [B, H, 1, D]", encoded.q);
  return ops::exact_attention_step(encoded.q.squeeze(2), keys(), values(),
                                   {encoded.scale, encoded.lag_bias, encoded.lag_keys,
                                    encoded.lag_values, window, key_bias})
      .unsqueeze(2);
}

}  // namespace lagwise
