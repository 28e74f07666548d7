#include "lagwise/ops/linear_call.h"

#include <ATen/Dispatch.h>
#include <c10/util/Exception.h>

#include <array>
#include <string_view>

#include "lagwise/ops/expect.h"
#include "lagwise/ops/feature_map.h"

namespace lagwise::ops {
namespace {

/// The place of `value` among the legal words.
template <size_t kCount>
size_t choose(const char* op, const char* option, const std::string& value,
              const std::array<std::string_view, kCount>& legal) {
  std::string list;
  for (size_t i = 0; i < kCount; ++i) {
    if (value == legal[i]) return i;
    list += (i ? ", " : "") + std::string(legal[i]);
  }
  TORCH_CHECK(false, op, ": expected ", option, " one of ", list, ", got '", value,
              "'");
}

void expect(const LinearCall& call, const char* name, const char* shape,
            const at::Tensor& x, at::IntArrayRef sizes) {
  expect_tensor(call.op, name, shape, x, sizes, call.q);
}

void check_sizes(LinearCall& call, bool step) {
  const int64_t rank = step ? 3 : 4;
  TORCH_CHECK(call.q.dim() == rank, call.op, ": expected q ",
              step ? "[B, H, D]" : "[B, H, N, D]", ", got ", call.q.sizes());
  const auto type = call.q.scalar_type();
  TORCH_CHECK(type == at::kFloat || type == at::kDouble, call.op,
              ": expected floating-point tensors, Float or Double, got ", type);
  call.b = call.q.size(0), call.h = call.q.size(1), call.d = call.q.size(-1);
  call.n = step ? 1 : call.q.size(2);
  if (step) {
    call.m = 1;
    expect(call, "k", "[B, H, D]", call.k, {call.b, call.h, call.d});
    expect(call, "v", "[B, H, E]", call.v, {call.b, call.h, -1});
  } else {
    expect(call, "k", "[B, H, M, D]", call.k, {call.b, call.h, -1, call.d});
    call.m = call.k.size(2);
    expect(call, "v", "[B, H, M, E]", call.v, {call.b, call.h, call.m, -1});
  }
  call.e = call.v.size(-1);
  TORCH_CHECK(!call.causal || call.n == call.m, call.op,
              ": expected as many queries as keys when causal, got N = ", call.n,
              " and M = ", call.m, "; carry the earlier keys in a state instead");
}

void check_denominator(LinearCall& call, bool step) {
  using Divide = LinearCall::Divide;
  const bool given = call.q_norm.defined() && call.k_norm.defined();
  TORCH_CHECK(call.q_norm.defined() == call.k_norm.defined(), call.op,
              ": expected q_norm and k_norm together, got only ",
              call.q_norm.defined() ? "q_norm" : "k_norm");
  TORCH_CHECK(given || call.divide != Divide::separate, call.op,
              ": expected q_norm and k_norm with denominator 'separate', got none");
  TORCH_CHECK(!given || call.divide == Divide::separate, call.op,
              ": expected denominator 'separate' with q_norm and k_norm, got '",
              call.divide == Divide::same ? "same" : "none", "'");
  call.f = call.divide == Divide::same ? call.d : 0;
  if (!given) return;
  call.f = call.q_norm.dim() > 0 ? call.q_norm.size(-1) : -1;
  if (step) {
    expect(call, "q_norm", "[B, H, F]", call.q_norm, {call.b, call.h, call.f});
    expect(call, "k_norm", "[B, H, F]", call.k_norm, {call.b, call.h, call.f});
  } else {
    expect(call, "q_norm", "[B, H, N, F]", call.q_norm,
           {call.b, call.h, call.n, call.f});
    expect(call, "k_norm", "[B, H, M, F]", call.k_norm,
           {call.b, call.h, call.m, call.f});
  }
}

/// Factors above 1 would let the past grow without bound; a factor where its
/// logarithm belongs is the usual reason.
void check_fades(const LinearCall& call) {
  if (!call.decay.device().is_cpu()) return;  // meta tensors have no numbers
  const at::Tensor decay = call.decay.contiguous();
  AT_DISPATCH_FLOATING_TYPES(decay.scalar_type(), "linear_attention", [&] {
    for (int64_t i = 0; i < decay.numel(); ++i) {
      const scalar_t log = decay.data_ptr<scalar_t>()[i];
      TORCH_CHECK(log <= 0, call.op,
                  ": expected decay <= 0, the logarithm of a factor, got ", log);
    }
  });
}

void check_decay(LinearCall& call) {
  using DecayBy = LinearCall::DecayBy;
  call.decay_by = DecayBy::none;
  if (!call.decay.defined()) return;
  TORCH_CHECK(call.causal, call.op, ": expected no decay in full attention, got decay ",
              call.decay.sizes(),
              "; a decay fades the past, which only causal attention has");
  call.decay_by = call.decay.dim() == 2 ? DecayBy::channel : DecayBy::head;
  if (call.decay_by == DecayBy::head) {
    expect(call, "decay", "[H] or [H, D]", call.decay, {call.h});
    return check_fades(call);
  }
  expect(call, "decay", "[H] or [H, D]", call.decay, {call.h, call.d});
  check_fades(call);
  TORCH_CHECK(call.divide != LinearCall::Divide::separate || call.f == call.d, call.op,
              ": expected q_norm of width D = ", call.d,
              " with a decay per channel, got F = ", call.f);
}

/// A step writes to its state: it must be there, and every number have its place.
void check_own_memory(const LinearCall& call, const char* name, const at::Tensor& x) {
  TORCH_CHECK(x.defined(), call.op, ": expected a state to advance, got no ", name);
  for (int64_t i = 0; i < x.dim(); ++i)
    TORCH_CHECK(x.size(i) < 2 || x.stride(i) != 0, call.op, ": expected ", name,
                " with memory of its own, got axis ", i, " expanded (stride 0)");
}

/// Numbers of a short int64 tensor on the CPU.
std::vector<int64_t> read_numbers(const LinearCall& call, const char* name,
                                  const at::Tensor& x, int64_t count) {
  TORCH_CHECK(x.dim() == 1 && (count < 0 || x.size(0) == count), call.op, ": expected ",
              name, count < 0 ? " [S + 1]" : " [B] = [",
              count < 0 ? "" : std::to_string(count) + "]", ", got ", x.sizes());
  TORCH_CHECK(x.scalar_type() == at::kLong || x.scalar_type() == at::kInt, call.op,
              ": expected ", name, " of whole numbers, Long or Int, got ",
              x.scalar_type());
  TORCH_CHECK(x.device().is_cpu(), call.op, ": expected ", name, " on the CPU, got ",
              x.device());
  const at::Tensor dense = x.to(at::kLong).contiguous();
  return {dense.data_ptr<int64_t>(), dense.data_ptr<int64_t>() + dense.numel()};
}

/// Lengths of a padded batch: at most `rows` each.
std::vector<int64_t> read_lengths(const LinearCall& call, const char* name,
                                  const at::Tensor& x, int64_t rows) {
  const auto lengths = read_numbers(call, name, x, call.b);
  for (const int64_t length : lengths)
    TORCH_CHECK(0 <= length && length <= rows, call.op, ": expected ", name,
                " from 0 to ", rows, ", got ", length);
  return lengths;
}

/// Where packed sequences begin, and the end of the last: 0, ..., rows.
std::vector<int64_t> read_cuts(const LinearCall& call, const char* name,
                               const at::Tensor& x, int64_t rows) {
  const auto cuts = read_numbers(call, name, x, -1);
  const bool whole = !cuts.empty() && cuts.front() == 0 && cuts.back() == rows;
  TORCH_CHECK(whole, call.op, ": expected ", name, " from 0 to ", rows, ", got ",
              at::IntArrayRef(cuts));
  for (size_t i = 1; i < cuts.size(); ++i)
    TORCH_CHECK(cuts[i - 1] <= cuts[i], call.op, ": expected ", name,
                " that never falls, got ", cuts[i - 1], " before ", cuts[i]);
  return cuts;
}

/// Keys in a layout of their own need the queries' and full attention.
void check_keys_apart(const LinearCall& call, const char* name, const char* keys_name,
                      const at::Tensor& x, const at::Tensor& keys) {
  TORCH_CHECK(!keys.defined() || x.defined(), call.op, ": expected ", name, " with ",
              keys_name, ", got none");
  TORCH_CHECK(!keys.defined() || !call.causal, call.op, ": expected no ", keys_name,
              " in causal attention, where queries and keys are one sequence");
  TORCH_CHECK(!x.defined() || keys.defined() || call.n == call.m, call.op,
              ": expected ", keys_name, " with ", name, " where N = ", call.n,
              " differs from M = ", call.m);
}

void check_packed(LinearCall& call, const LinearOptions& options) {
  TORCH_CHECK(call.b == 1, call.op, ": expected B = 1 with cu_seqlens, got ", call.b);
  const auto& keys_given = options.key_cu_seqlens;
  check_keys_apart(call, "cu_seqlens", "key_cu_seqlens", options.cu_seqlens,
                   keys_given);
  const auto queries = read_cuts(call, "cu_seqlens", options.cu_seqlens, call.n);
  const auto keys = keys_given.defined()
                        ? read_cuts(call, "key_cu_seqlens", keys_given, call.m)
                        : queries;
  TORCH_CHECK(keys.size() == queries.size(), call.op,
              ": expected key_cu_seqlens of as many sequences as cu_seqlens, ",
              queries.size() - 1, ", got ", keys.size() - 1);
  for (size_t i = 1; i < queries.size(); ++i)
    call.sequences.push_back({0, queries[i - 1], queries[i] - queries[i - 1],
                              keys[i - 1], keys[i] - keys[i - 1]});
}

void check_padded(LinearCall& call, const LinearOptions& options) {
  const auto& keys_given = options.key_lengths;
  check_keys_apart(call, "lengths", "key_lengths", options.lengths, keys_given);
  const auto queries = read_lengths(call, "lengths", options.lengths, call.n);
  const auto keys = keys_given.defined()
                        ? read_lengths(call, "key_lengths", keys_given, call.m)
                        : queries;
  for (int64_t b = 0; b < call.b; ++b) {
    const auto i = static_cast<size_t>(b);
    call.sequences.push_back({b, 0, queries[i], 0, keys[i]});
  }
}

void check_sequences(LinearCall& call, const LinearOptions& options) {
  const bool padded = options.lengths.defined() || options.key_lengths.defined();
  const bool packed = options.cu_seqlens.defined() || options.key_cu_seqlens.defined();
  TORCH_CHECK(!padded || !packed, call.op,
              ": expected lengths (padded) or cu_seqlens (packed), got both");
  call.ragged = padded;
  if (packed) return check_packed(call, options);
  if (padded) return check_padded(call, options);
  for (int64_t b = 0; b < call.b; ++b)
    call.sequences.push_back({b, 0, call.n, 0, call.m});
}

void check_log_scale(const LinearCall& call, bool step) {
  if (!call.log_scale.defined()) {
    TORCH_CHECK(!call.max.defined() || call.max.numel() == 0, call.op,
                ": expected no m without log_scale, got one of ", call.max.sizes());
    return;
  }
  step ? expect(call, "log_scale", "[B, H]", call.log_scale, {call.b, call.h})
       : expect(call, "log_scale", "[B, H, M]", call.log_scale,
                {call.b, call.h, call.m});
  TORCH_CHECK(call.divide != LinearCall::Divide::none, call.op,
              ": expected a denominator with log_scale, to cancel its maximum, got "
              "'none'");
  TORCH_CHECK(call.eps == 0, call.op,
              ": expected eps = 0 with log_scale, where sums have no fixed scale, got ",
              call.eps);
  TORCH_CHECK(
      call.map.kind == kernels::FeatureMap::Kind::none, call.op,
      ": expected feature_map 'none' with log_scale, got another; give features");
  TORCH_CHECK(call.s.defined() == call.max.defined(), call.op,
              ": expected s and m of a state together with log_scale, got only ",
              call.s.defined() ? "s" : "m");
  if (call.max.defined())
    expect(call, "m", "[B, H]", call.max, {call.states(), call.h});
}

void check_state(const LinearCall& call, bool step) {
  if (step) check_own_memory(call, "s", call.s);
  if (step) check_own_memory(call, "z", call.z);
  if (step && call.log_scale.defined()) check_own_memory(call, "m", call.max);
  if (call.s.defined())
    expect(call, "s", "[B, H, D, E]", call.s, {call.states(), call.h, call.d, call.e});
  if (call.z.defined())
    expect(call, "z", "[B, H, F]", call.z, {call.states(), call.h, call.f});
  TORCH_CHECK(
      call.divide == LinearCall::Divide::none || call.s.defined() == call.z.defined(),
      call.op, ": expected s and z of a state together, got only ",
      call.s.defined() ? "s" : "z");
}

}  // namespace

LinearCall check_linear(const char* op, const at::Tensor& q, const at::Tensor& k,
                        const at::Tensor& v, const LinearState& from,
                        const LinearOptions& options, bool step) {
  LinearCall call;
  call.op = op;
  call.q = q, call.k = k, call.v = v;
  call.q_norm = options.q_norm, call.k_norm = options.k_norm;
  call.decay = options.decay, call.log_scale = options.log_scale;
  call.s = from.s, call.z = from.z, call.max = from.m;
  call.causal = options.causal || step;
  call.eps = options.eps;
  TORCH_CHECK(call.eps >= 0, op, ": expected eps >= 0, got ", call.eps);
  call.map = read_feature_map(op, options.feature_map);
  call.divide = static_cast<LinearCall::Divide>(
      choose<3>(op, "denominator", options.denominator, {"none", "same", "separate"}));
  call.clamp = choose<2>(op, "eps_mode", options.eps_mode, {"add", "clamp"}) == 1;
  check_sizes(call, step);
  check_denominator(call, step);
  check_decay(call);
  check_sequences(call, options);
  check_state(call, step);
  check_log_scale(call, step);
  return call;
}

}  // namespace lagwise::ops
