// What a plan must hold before anything is computed by it.

#include <cmath>

#include "lagwise/core/errors.h"
#include "lagwise/runtime/map_kinds.h"
#include "lagwise/runtime/plan.h"

namespace lagwise::runtime {
namespace {

constexpr int64_t kMostWidth = int64_t{1} << 24;  // of any row: products stay in range
constexpr int64_t kMostBins = 65536;  // of a fold, which has no numbers for each
// A state grows with the product of two widths, of which the file holds but the sum: some
// megabytes of file could ask for terabytes.
constexpr double kMostStateFloats = 1 << 30;

class Checker {
 public:
  Checker(const std::string& file, const Plan& plan) : file_(file), plan_(plan) {}

  void whole() {
    at_ = "plan";
    for (const int64_t width : {plan_.vocabulary, plan_.dim, plan_.heads, plan_.key_dim,
                                plan_.value_dim, plan_.feed_forward})
      require(width >= 1 && width <= kMostWidth, "widths from 1 to 2^24");
    require(plan_.mixed_columns() <= kMostWidth, "heads of at most 2^24 columns");
    require(plan_.norm == "rms" || plan_.norm == "layer", "a norm rms or layer");
    require(plan_.norm_eps > 0, "norm_eps > 0");
    require(!plan_.one.layers.empty(), "at least one layer");
    double state_floats = 0;
    for (size_t i = 0; i < plan_.one.inputs.size(); ++i) {
      at_ = "inputs." + std::to_string(i);
      input(plan_.one.inputs[i]);
    }
    for (size_t i = 0; i < plan_.one.layers.size(); ++i) {
      at_ = "layers." + std::to_string(i);
      settings(plan_.one.layers[i]);
      place(plan_.one.layers[i]);
      memory(plan_.one.layers[i]);
      state_floats += static_cast<double>(plan_.value_columns()) *
                      static_cast<double>(widths_of(plan_, plan_.one.layers[i]).state);
    }
    at_ = "plan";
    require(state_floats <= kMostStateFloats, "states of at most 4 GB");
  }

 private:
  void require(bool holds, const std::string& expected) const {
    if (!holds) throw DataError(file_, -1, "in " + at_ + ": " + expected);
  }

  template <class T>
  void sized(const char* name, const Numbers<T>& x, int64_t size) const {
    require(x.empty() || x.size() == size, std::string(name) + " of " +
                                               std::to_string(size) + " numbers, got " +
                                               std::to_string(x.size()));
  }

  void input(const OneTokenInput& x) const {
    require(x.table.size() % plan_.dim == 0, "a table of whole rows");
    require(!x.empty(), "a table or frequencies");
    const int64_t angles = x.frequency.size();
    require(x.sine_at.size() == angles && x.cosine_at.size() == angles,
            "channels of every sine and cosine");
    for (const auto* const channels : {&x.sine_at, &x.cosine_at})
      for (const int64_t channel : channels->span())
        require(channel >= -1 && channel < plan_.dim, "channels within the model");
    finite("frequency", x.frequency);
  }

  void finite(const char* name, const Numbers<double>& x) const {
    for (const double each : x.span())
      require(std::isfinite(each), std::string("finite numbers in ") + name);
  }

  void settings(const OneTokenLayer& layer) const {
    const OneTokenPlace& p = layer.place;
    const OneTokenMemory& m = layer.memory;
    require(p.width >= 1 && p.width <= kMostWidth, "a width from 1 to 2^24");
    require(p.sines >= 0 && p.sines <= 4096, "sines from 0 to 4096");
    require(p.blocks >= 1 && p.blocks <= p.width, "blocks of the width");
    require(m.map.horizon >= 0, "a horizon from 0 on");
    require(m.convolution >= 0 && m.convolution <= 64,
            "a convolution of 0 to 64 tokens");
    require(pointwise_kind(m.map.pointwise).has_value(), "a known feature map");
    require(m.map.random.empty() || random_kind(m.map.random).has_value(),
            "known random features");
    require(m.norm == "none" || m.norm == "rms_head" || m.norm == "layer_concat",
            "a norm none, rms_head or layer_concat");
    require(!p.separate || p.after_map, "features apart only behind the map");
    require(std::isfinite(p.turn_scale) && std::isfinite(m.eps) && m.eps >= 0 &&
                m.norm_eps >= 0,
            "finite settings");
  }

  void place(const OneTokenLayer& layer) const {
    const OneTokenPlace& p = layer.place;
    const LayerWidths w = widths_of(plan_, layer);
    const int64_t in = p.after_map ? w.features : plan_.key_dim;  // what it acts on
    if (p.matrix.empty() && p.sines == 0)
      require(p.width == in, "a width of " + std::to_string(in));
    sized("matrix", p.matrix, in * p.width);
    rotation(p);
    waves(p, in);
    if (p.log_fade.size() != plan_.heads)
      sized("log_fade", p.log_fade, plan_.heads * w.state);
  }

  void rotation(const OneTokenPlace& p) const {
    require((p.planes == 0) == p.frequency.empty(), "frequencies of all planes");
    if (p.frequency.empty()) return;
    finite("frequency", p.frequency);
    require(p.width % p.blocks == 0, "blocks that divide the width");
    require(p.planes >= 1 && p.planes <= p.width / p.blocks / 2,
            "planes within the width");
    if (p.frequency.size() != p.planes)
      sized("frequency", p.frequency, plan_.heads * p.planes);
  }

  void waves(const OneTokenPlace& p, int64_t in) const {
    if (p.sines == 0) return;
    require(p.matrix.empty() && p.frequency.empty() && !p.after_map,
            "waves or rotations, not both");
    finite("turns", p.turns), finite("phase", p.phase);
    const int64_t pairs = plan_.heads * in * p.sines, columns = plan_.heads * in;
    require(p.turns.size() == pairs && p.phase.size() == pairs &&
                p.amplitude.size() == pairs,
            "waves of " + std::to_string(pairs) + " numbers");
    sized("constant", p.constant, columns);
    const bool gated = !p.constant.empty();
    if (p.fold.empty()) {
      require(p.noise.size() == 2 * pairs * p.width, "noise of every wave");
      require(p.gate_noise.size() == (gated ? columns * p.width : 0), "noise of gates");
      return;
    }
    require(p.width <= kMostBins, "at most 65536 bins");
    require(p.fold.size() == 2 * pairs + (gated ? columns : 0), "a fold of every wave");
    for (const int64_t bin : p.fold.span())
      require(bin != 0 && bin >= -p.width && bin <= p.width, "a fold into its bins");
  }

  void memory(const OneTokenLayer& layer) const {
    const OneTokenMemory& m = layer.memory;
    const LayerWidths w = widths_of(plan_, layer);
    require(w.features >= 1 && w.widest <= kMostWidth && w.state >= 1,
            "features from 1 to 2^24");
    require(m.map.random.empty() == m.map.directions.empty() &&
                m.map.directions.size() % w.mapped == 0,
            "directions of random features");
    require(m.map.random.empty() || m.map.pointwise == "none", "one feature map");
    sized("norm_gain", m.norm_gain, plan_.value_columns());
    sized("q_bias", m.q_bias, plan_.query_columns());
    sized("k_bias", m.k_bias, plan_.query_columns());
    require(m.q_bias.empty() == m.k_bias.empty(), "q_bias and k_bias, or neither");
    require(layer.place.log_fade.size() <= plan_.heads || w.norm <= w.state,
            "a factor for every channel of the denominator");
    require(!m.rewrites || !m.divides, "nothing divided where keys are replaced");
    require(!m.rewrites || layer.place.log_fade.empty() ||
                layer.place.log_fade.size() == plan_.heads,
            "one factor a head where keys are replaced");
  }

  const std::string& file_;
  const Plan& plan_;
  std::string at_;
};

}  // namespace

void check_plan(const std::string& file, const Plan& plan) {
  Checker(file, plan).whole();
}

}  // namespace lagwise::runtime
