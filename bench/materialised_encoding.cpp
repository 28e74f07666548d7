#include "bench/materialised_encoding.h"

#include <memory>
#include <string>

#include "bench/materialised_spe.h"
#include "lagwise/encodings/row_tables.h"

namespace lagwise::bench {
namespace {

at::Tensor given(const Draw& draw, const char* name) {
  const auto found = draw.given.find(name);
  return found == draw.given.end() ? at::Tensor() : found->second;
}

/// Has the parameters of the encoding it stands in for.
class MaterialisedEncoding : public Encoding {
 public:
  explicit MaterialisedEncoding(std::unique_ptr<Encoding> ours)
      : Encoding(ours->traits(), ours->shape()), ours_(std::move(ours)) {}

  int64_t width() const override { return ours_->width(); }
  Parameters shared() override { return ours_->shared(); }
  Parameters layer(int64_t index, int64_t count) override {
    return ours_->layer(index, count);
  }

  Code code(const Placement&, const Draw& draw, int64_t queries, int64_t,
            const Code*) override {
    const Parameters p = ours_->shared();  // frequencies, offsets, gains
    const MaterialisedCodes codes =
        materialised_codes({p[0].second, p[1].second, p[2].second, {}}, queries,
                           width(), given(draw, "sine_spe.z"));
    return {draw, std::make_shared<RowTables>(codes.queries, codes.keys)};
  }

  Encoded encode(const at::Tensor& q, const at::Tensor& k, const Code& code,
                 const Layer& layer, const Placement&) override {
    const at::Tensor gate = layer.own.empty() ? at::Tensor() : layer["gate"];
    const auto& codes = *code.as<RowTables>();
    const auto [q_out, k_out] = materialised_filter(
        q, k, {codes.queries, codes.keys}, gate, given(code.draw, "sine_spe.gate"));
    return {q_out, k_out};
  }

 private:
  std::unique_ptr<Encoding> ours_;
};

std::unique_ptr<Encoding> make(Spec& spec, const HeadShape& shape) {
  const std::string text =
      "sine_spe:sines=" + std::to_string(spec.take("sines", 5)) +
      ",realizations=" + std::to_string(spec.take("realizations", 64)) +
      ",gated=" + (spec.take("gated", true) ? "true" : "false");
  return std::make_unique<MaterialisedEncoding>(make_encoding(text, shape));
}

}  // namespace

void register_materialised_encoding() {
  static const RegisterEncoding registered({
      .name = "materialised",
      .summary = "sine_spe with its codes as tensors (a baseline)",
      .paper = "arXiv:2105.08399",
      .make = make,
  });
}

}  // namespace lagwise::bench
