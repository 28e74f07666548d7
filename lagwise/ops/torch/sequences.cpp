#include "lagwise/ops/torch/sequences.h"

#include <c10/util/Exception.h>

#include <string>
#include <tuple>
#include <utility>

namespace lagwise::ops {
namespace {

class Reader {
 public:
  Reader(const char* op, const BatchShape& batch) : op_(op), batch_(batch) {}

  std::vector<Sequence> whole() const {
    std::vector<Sequence> each;
    for (int64_t b = 0; b < batch_.b; ++b)
      each.push_back({b, 0, batch_.n, 0, batch_.m});
    return each;
  }

  std::vector<Sequence> padded(const Ragged& x) const {
    check_keys("starts", "key_starts", x.starts, x.key_starts);
    check_keys("lengths", "key_lengths", x.lengths, x.key_lengths);
    auto each = whole();
    const bool own_keys = x.key_starts.defined() || x.key_lengths.defined();
    if (x.starts.defined() || x.lengths.defined()) {
      const auto spans =
          real_rows({"starts", x.starts}, {"lengths", x.lengths}, batch_.n);
      for (size_t i = 0; i < each.size(); ++i) {
        std::tie(each[i].query_begin, each[i].queries) = spans[i];
        if (!own_keys) std::tie(each[i].key_begin, each[i].keys) = spans[i];
      }
    }
    if (own_keys) {
      const auto spans = real_rows({"key_starts", x.key_starts},
                                   {"key_lengths", x.key_lengths}, batch_.m);
      for (size_t i = 0; i < each.size(); ++i)
        std::tie(each[i].key_begin, each[i].keys) = spans[i];
    }
    return each;
  }

  std::vector<Sequence> packed(const Ragged& x) const {
    // Without the queries' cuts nobody knows which queries see which keys.
    TORCH_CHECK(x.cu_seqlens.defined(), op_,
                ": expected cu_seqlens with key_cu_seqlens, got none");
    TORCH_CHECK(batch_.b == 1, op_, ": expected B = 1 with cu_seqlens, got ", batch_.b);
    check_keys("cu_seqlens", "key_cu_seqlens", x.cu_seqlens, x.key_cu_seqlens);
    const auto queries = cuts("cu_seqlens", x.cu_seqlens, batch_.n);
    const auto keys = x.key_cu_seqlens.defined()
                          ? cuts("key_cu_seqlens", x.key_cu_seqlens, batch_.m)
                          : queries;
    TORCH_CHECK(keys.size() == queries.size(), op_,
                ": expected key_cu_seqlens of as many sequences as cu_seqlens, ",
                queries.size() - 1, ", got ", keys.size() - 1);
    std::vector<Sequence> each;
    for (size_t i = 1; i < queries.size(); ++i)
      each.push_back({0, queries[i - 1], queries[i] - queries[i - 1], keys[i - 1],
                      keys[i] - keys[i - 1]});
    return each;
  }

 private:
  /// Whether keys may, or must, have numbers of their own.
  void check_keys(const char* name, const char* keys_name, const at::Tensor& x,
                  const at::Tensor& keys) const {
    TORCH_CHECK(!keys.defined() || !batch_.one_sequence, op_, ": expected no ",
                keys_name,
                " in causal attention, where queries and keys are one sequence");
    TORCH_CHECK(!x.defined() || keys.defined() || batch_.n == batch_.m, op_,
                ": expected ", keys_name, " with ", name, " where N = ", batch_.n,
                " differs from M = ", batch_.m);
  }

  struct Named {
    const char* name;
    const at::Tensor& x;
  };

  /// The real rows of each batch row: where they begin, and how many there are.
  std::vector<std::pair<int64_t, int64_t>> real_rows(const Named& starts,
                                                     const Named& lengths,
                                                     int64_t rows) const {
    std::vector<std::pair<int64_t, int64_t>> spans(static_cast<size_t>(batch_.b),
                                                   {0, rows});
    if (starts.x.defined()) {
      const auto begins = counts(starts, rows);
      for (size_t i = 0; i < spans.size(); ++i)
        spans[i] = {begins[i], rows - begins[i]};
    }
    if (lengths.x.defined()) {
      const auto real = counts(lengths, rows);
      for (size_t i = 0; i < spans.size(); ++i) {
        TORCH_CHECK(real[i] <= spans[i].second, op_, ": expected ", starts.name, " + ",
                    lengths.name, " of at most ", rows, ", got ", spans[i].first, " + ",
                    real[i]);
        spans[i].second = real[i];
      }
    }
    return spans;
  }

  /// `shape` is what was expected.
  std::vector<int64_t> numbers(const char* name, const std::string& shape, bool fits,
                               const at::Tensor& x) const {
    TORCH_CHECK(fits, op_, ": expected ", name, " ", shape, ", got ", x.sizes());
    TORCH_CHECK(x.scalar_type() == at::kLong || x.scalar_type() == at::kInt, op_,
                ": expected ", name, " of whole numbers, Long or Int, got ",
                x.scalar_type());
    TORCH_CHECK(x.device().is_cpu(), op_, ": expected ", name, " on the CPU, got ",
                x.device());
    const at::Tensor dense = x.to(at::kLong).contiguous();
    return {dense.data_ptr<int64_t>(), dense.data_ptr<int64_t>() + dense.numel()};
  }

  /// One number for each row of a padded batch: at most `rows` each.
  std::vector<int64_t> counts(const Named& given, int64_t rows) const {
    const at::Tensor& x = given.x;
    const auto each = numbers(given.name, "[B] = [" + std::to_string(batch_.b) + "]",
                              x.dim() == 1 && x.size(0) == batch_.b, x);
    for (const int64_t one : each)
      TORCH_CHECK(0 <= one && one <= rows, op_, ": expected ", given.name,
                  " from 0 to ", rows, ", got ", one);
    return each;
  }

  /// Where packed sequences begin, and the end of the last: 0, ..., rows.
  std::vector<int64_t> cuts(const char* name, const at::Tensor& x, int64_t rows) const {
    const auto at = numbers(name, "[S + 1]", x.dim() == 1 && x.size(0) > 0, x);
    TORCH_CHECK(at.front() == 0 && at.back() == rows, op_, ": expected ", name,
                " from 0 to ", rows, ", got ", at::IntArrayRef(at));
    for (size_t i = 1; i < at.size(); ++i)
      TORCH_CHECK(at[i - 1] <= at[i], op_, ": expected ", name,
                  " that never falls, got ", at[i - 1], " before ", at[i]);
    return at;
  }

  const char* op_;
  const BatchShape& batch_;
};

}  // namespace

Sequences read_sequences(const char* op, const BatchShape& batch,
                         const Ragged& ragged) {
  const bool padded = ragged.starts.defined() || ragged.key_starts.defined() ||
                      ragged.lengths.defined() || ragged.key_lengths.defined();
  const bool packed = ragged.cu_seqlens.defined() || ragged.key_cu_seqlens.defined();
  TORCH_CHECK(!padded || !packed, op,
              ": expected starts or lengths (padded) or cu_seqlens (packed), got both");
  const Reader reader(op, batch);
  if (padded) return {reader.padded(ragged), true};
  if (packed) return {reader.packed(ragged), false};
  return {reader.whole(), false};
}

}  // namespace lagwise::ops
