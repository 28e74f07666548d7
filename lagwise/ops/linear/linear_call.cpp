#include "lagwise/ops/linear/linear_call.h"

#include <ATen/Dispatch.h>
#include <c10/util/Exception.h>
#include <c10/util/StringUtil.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "lagwise/ops/feature_map.h"
#include "lagwise/ops/torch/expect.h"

namespace lagwise::ops {
namespace {

/// The place of `value` among the legal words.
template <size_t kCount>
size_t choose(const char* op, const char* option, const std::string& value,
              const std::array<std::string_view, kCount>& legal) {
  const auto found = std::find(legal.begin(), legal.end(), value);
  TORCH_CHECK(found != legal.end(), op, ": expected ", option, " one of ",
              c10::Join(", ", legal), ", got '", value, "'");
  return static_cast<size_t>(found - legal.begin());
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
              ": expected floating-point tensors, Float, Double or BFloat16, got ",
              type);
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

/// [B, H, N] of a whole sequence, [B, H] of a step.
void expect_per_token(const LinearCall& call, const char* name, const at::Tensor& x,
                      bool step) {
  step ? expect(call, name, "[B, H]", x, {call.b, call.h})
       : expect(call, name, "[B, H, N]", x, {call.b, call.h, call.n});
  TORCH_CHECK(call.causal, call.op, ": expected no ", name,
              " in full attention, got one of ", x.sizes(),
              "; rows forget and overwrite the past, which only causal attention has");
}

void check_memory(const LinearCall& call, bool step) {
  if (call.log_decay.defined())
    expect_per_token(call, "log_decay", call.log_decay, step);
  if (!call.write_strength.defined()) return;
  expect_per_token(call, "write_strength", call.write_strength, step);
  TORCH_CHECK(call.divide == LinearCall::Divide::none, call.op,
              ": expected denominator 'none' with write_strength, got '",
              call.divide == LinearCall::Divide::same ? "same" : "separate",
              "'; the delta rule has no weights that could be summed");
  TORCH_CHECK(!call.log_scale.defined(), call.op,
              ": expected no log_scale with write_strength, got one of ",
              call.log_scale.sizes());
  TORCH_CHECK(call.decay_by != LinearCall::DecayBy::channel, call.op,
              ": expected decay [H] with write_strength, got one per channel, ",
              call.decay.sizes());
}

/// A step writes to its state: it must be there, and every number have its place.
void check_own_memory(const LinearCall& call, const char* name, const at::Tensor& x) {
  TORCH_CHECK(x.defined(), call.op, ": expected a state to advance, got no ", name);
  for (int64_t i = 0; i < x.dim(); ++i)
    TORCH_CHECK(x.size(i) < 2 || x.stride(i) != 0, call.op, ": expected ", name,
                " with memory of its own, got axis ", i, " expanded (stride 0)");
}

void check_sequences(LinearCall& call, const LinearOptions& options) {
  const BatchShape batch{call.b, call.n, call.m, call.causal};
  auto found =
      read_sequences(call.op, batch,
                     {options.lengths, options.key_lengths, options.cu_seqlens,
                      options.key_cu_seqlens, options.starts, options.key_starts});
  call.sequences = std::move(found.each);
  call.ragged = found.ragged;
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
  call.log_decay = options.log_decay, call.write_strength = options.write_strength;
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
  check_memory(call, step);
  check_sequences(call, options);
  check_state(call, step);
  check_log_scale(call, step);
  return call;
}

}  // namespace lagwise::ops
