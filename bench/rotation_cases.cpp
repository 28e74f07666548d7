// Rotations of queries and keys: RoPE in both layouts and the rotation of LRPE,
// against a copy of the same tensors, which is as fast as memory allows.

#include <ATen/ops/rand.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <memory>

#include "bench/encoding_cases.h"
#include "lagwise/encodings/encoding.h"

namespace lagwise::bench {
namespace {

struct Sequence {
  at::Tensor q, k;
  std::shared_ptr<Encoding> encoding;
  Code code;
  Layer layer;
};

Sequence sequence(const char* text, const Shape& shape, int64_t position) {
  Sequence s;
  s.q = at::rand({shape.batch, shape.heads, shape.n, shape.d}, at::kFloat);
  s.k = at::rand(s.q.sizes(), at::kFloat);
  s.encoding = make_encoding(text, {.heads = shape.heads, .dim = shape.d});
  const Placement at{.query_start = position, .key_start = position};
  s.code = s.encoding->code(at, {}, shape.n, shape.n);
  s.layer = {0, 1, s.encoding->layer(0, 1)};
  return s;
}

/// One layer: the code, which all layers of a pass share, is made before.
Call encode(const Sequence& s) {
  return [s] {
    const Encoded e = s.encoding->encode(s.q, s.k, s.code, s.layer, {});
    return std::vector{e.q, e.k};
  };
}

Call copy(const Sequence& s) {
  return [s] { return std::vector{s.q.clone(), s.k.clone()}; };
}

/// Forward, then the gradients of q and k; the copy copies as much.
Call encode_and_back(Sequence s) {
  s.q.set_requires_grad(true);
  s.k.set_requires_grad(true);
  const at::Tensor g = at::rand(s.q.sizes(), at::kFloat);
  return [s, g] {
    const at::AutoGradMode on(true);
    const Encoded e = s.encoding->encode(s.q, s.k, s.code, s.layer, {});
    return torch::autograd::grad({e.q, e.k}, {s.q, s.k}, {g, g});
  };
}

Call copy_and_back(const Sequence& s) {
  const at::Tensor g = at::rand(s.q.sizes(), at::kFloat);
  return [s, g] {
    const at::Tensor q = s.q.clone(), k = s.k.clone();
    return std::vector{g.clone(), g.clone()};
  };
}

/// The whole of a step: angles of one position, then the turn.
Call step(const char* text, const Shape& shape, int64_t position) {
  const Sequence s = sequence(text, shape, position);
  return [s, position] {
    const Placement at{.query_start = position, .key_start = position};
    const Encoded e =
        s.encoding->encode(s.q, s.k, s.encoding->code(at, {}, 1, 1), s.layer, at);
    return std::vector{e.q, e.k};
  };
}

void rotation_cases(Comparer& comparer, int threads) {
  const Shape shape = {comparer.quick() ? 1024 : 4096, 8, 64, 64};
  for (const char* text : {"rope:layout=half", "rope:layout=interleaved",
                           "lrpe:lambda=rotation,p=identity,angles=fixed"}) {
    const Sequence s = sequence(text, shape, 0);
    comparer.measure({.name = std::string(text) + " (ratio: share of copy bandwidth)",
                      .direction = "forward",
                      .shape = shape,
                      .threads = threads,
                      .ours = encode(s),
                      .baselines = {{"copy", copy(s), threads}}});
    comparer.measure({.name = std::string(text) + " (ratio: share of copy bandwidth)",
                      .direction = "forward+backward",
                      .shape = shape,
                      .threads = threads,
                      .ours = encode_and_back(s),
                      .baselines = {{"copy", copy_and_back(s), threads}}});
    const Shape token = {1, 8, 64, 64};
    comparer.measure({.name = std::string(text) +
                              ", step at position 1000000 (cost: over position 1000)",
                      .direction = "step",
                      .shape = token,
                      .ours = step(text, token, 1'000'000),
                      .baselines = {{"position_1000", step(text, token, 1000)}},
                      .is_cost = true});
  }
}

const RegisterEncodingCases registered("rotation", rotation_cases);

}  // namespace
}  // namespace lagwise::bench
