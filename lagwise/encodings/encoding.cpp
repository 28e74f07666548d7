#include "lagwise/encodings/encoding.h"

#include <ATen/ops/arange.h>
#include <c10/util/Exception.h>

#include "lagwise/core/registry.h"

namespace lagwise {
namespace {

Registry<EncodingRow>& registry() {
  static Registry<EncodingRow> registry("encoding");
  return registry;
}

}  // namespace

const at::Tensor& Layer::operator[](std::string_view name) const {
  for (const auto& [key, value] : own)
    if (key == name) return value;
  TORCH_INTERNAL_ASSERT(false, "no parameter '", std::string(name), "' in this layer");
}

Parameters Encoding::layer(int64_t, int64_t) { return {}; }

at::Tensor Encoding::embed(const at::Tensor& x, const Placement&) { return x; }

Code Encoding::code(const Placement&, const Draw& draw, int64_t, int64_t, const Code*) {
  return {draw};
}

std::optional<OneTokenPlace> Encoding::one_token(const Layer&, const Draw&, int64_t) {
  return std::nullopt;
}

OneTokenPlace Encoding::as_they_are() const {
  OneTokenPlace place;
  place.width = width();
  return place;
}

RegisterEncoding::RegisterEncoding(EncodingRow row) { registry().add(row); }

const std::vector<EncodingRow>& encodings() { return registry().rows(); }

const EncodingRow& encoding_row(std::string_view name) { return registry().find(name); }

std::unique_ptr<Encoding> make_encoding(std::string_view text, const HeadShape& shape) {
  Spec spec(text);
  auto encoding = encoding_row(spec.name()).make(spec, shape);
  spec.finish();
  return encoding;
}

std::vector<Spec::Option> encoding_options(const EncodingRow& row) {
  Spec spec(row.text());
  row.make(spec, {.heads = 4, .dim = 8});
  return spec.options();
}

std::vector<std::string> encodings_of_one_token() {
  std::vector<std::string> texts;
  for (const EncodingRow& row : encodings()) {
    const auto made = make_encoding(row.text(), {.heads = 4, .dim = 8});
    const Layer layer{0, 1, made->layer(0, 1)};
    if (made->traits().linear_causal && made->one_token(layer, {}, 1))
      texts.emplace_back(row.text());
  }
  return texts;
}

Encoded encode_once(Encoding& encoding, const at::Tensor& q, const at::Tensor& k,
                    const Placement& at, const Draw& draw, const Layer* layer) {
  const Code code = encoding.code(at, draw, q.size(2), k.size(2));
  if (layer != nullptr) return encoding.encode(q, k, code, *layer, at);
  return encoding.encode(q, k, code, {0, 1, encoding.layer(0, 1)}, at);
}

at::Tensor positions(const at::Tensor& given, int64_t start, int64_t rows) {
  if (given.defined()) return given.to(at::kDouble);
  return at::arange(start, start + rows, at::kDouble);
}

}  // namespace lagwise
