#include "bench/plain_mixer.h"

#include <memory>
#include <stdexcept>
#include <string>

#include "bench/torch_linear.h"
#include "lagwise/nn/mixer.h"

namespace lagwise::bench {
namespace {

class PlainMixer : public nn::Mixer {
 public:
  PlainMixer(std::string_view text, std::shared_ptr<Encoding> encoding, Layer layer)
      : encoding_(std::move(encoding)), layer_(std::move(layer)) {
    Spec spec(text);
    options_.causal = true;
    options_.feature_map = spec.take("map", "elu1");
    spec.finish();
  }

  bool draws() const override { return encoding_->traits().stochastic; }

  at::Tensor mix(const nn::HeadRows& rows, const nn::Pass& pass) const override {
    const Encoded x = encoding_->encode(rows.q, rows.k, pass.code, layer_, pass.at);
    return torch_linear(x.q, x.k, rows.v, {}, options_).out;
  }

  std::unique_ptr<nn::MixerState> start(int64_t) const override { refuse(); }
  at::Tensor extend(nn::MixerState&, const nn::HeadRows&,
                    const nn::Pass&) const override {
    refuse();
  }
  std::unique_ptr<nn::MixerState> listen(const at::Tensor&, const at::Tensor&,
                                         const nn::Pass&) const override {
    refuse();
  }
  at::Tensor ask(const nn::MixerState&, const at::Tensor&,
                 const nn::Pass&) const override {
    refuse();
  }

 private:
  [[noreturn]] static void refuse() {
    throw std::logic_error("plain: a baseline that trains and does not decode");
  }

  ops::LinearOptions options_;
  std::shared_ptr<Encoding> encoding_;
  Layer layer_;
};

}  // namespace

void register_plain_mixer() {
  static const nn::RegisterMixer registered({
      .name = "plain",
      .summary = "causal linear attention in plain torch (a baseline)",
      .options =
          [] {
            return std::vector<Spec::Option>{{"map", "elu1", "text"}};
          },
      .serves =
          [](const Traits& encoding, bool causal) {
            return causal && encoding.stage == Traits::Stage::before_map;
          },
      .feature_width = [](std::string_view, int64_t dim) { return dim; },
      .make = [](std::string_view text, const nn::MixerPlace&,
                 std::shared_ptr<Encoding> encoding,
                 Layer layer) -> std::unique_ptr<nn::Mixer> {
        return std::make_unique<PlainMixer>(text, std::move(encoding),
                                            std::move(layer));
      },
  });
}

}  // namespace lagwise::bench
