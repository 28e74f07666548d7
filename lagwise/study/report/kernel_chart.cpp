#include "lagwise/study/report/kernel_chart.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/sqrt.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <vector>

#include "lagwise/encodings/kernel_by_lag.h"

namespace lagwise {
namespace {

/// Lags as they are to 64, then 24 to each doubling, and every power of two: the far
/// end as plain as the near.
std::vector<int64_t> chosen_lags(int64_t most) {
  std::set<int64_t> lags;
  for (int64_t lag = 0; lag < most; lag += std::max<int64_t>(1, lag * 3 / 100))
    lags.insert(lag);
  for (int64_t lag = 1; lag < most; lag *= 2) lags.insert(lag);
  return {lags.begin(), lags.end()};
}

}  // namespace

Kernel kernel_of(Encoding& encoding, const Layer& layer, const Draw& first, int draws,
                 int64_t lags, const std::function<void(double)>& drawn) {
  if (!encoding.traits().stochastic) draws = 1;
  at::Tensor sum = at::zeros({encoding.shape().heads, lags}, at::kDouble),
             squares = sum.clone();
  for (int i = 0; i < draws; ++i) {
    if (drawn) drawn(double(i) / draws);
    Draw draw = first;
    draw.step += i;
    const at::Tensor one = kernel_by_lag(encoding, lags, draw, layer, lags);
    sum += one;
    squares += one * one;
  }
  const at::Tensor mean = sum / draws;
  const double unbiased = draws > 1 ? double(draws) / (draws - 1) : 0;
  return {mean, ((squares / draws - mean * mean).clamp_min(0) * unbiased).sqrt(),
          draws};
}

report::Chart kernel_chart(const std::string& title, const Kernel& kernel,
                           int64_t trained) {
  const auto lags = chosen_lags(kernel.mean.size(1));
  report::Chart chart;
  chart.title = title;
  chart.across = {"lag + 1", true, "count"};
  chart.up = {"kernel"};
  chart.mark = double(trained);
  chart.mark_label = fmt::format("training length {}", trained);
  for (int64_t h = 0; h < kernel.mean.size(0); ++h) {
    report::Series s;
    s.label = fmt::format("head {}", h);
    for (const int64_t lag : lags) {
      const auto y = kernel.mean[h][lag].item<double>();
      const auto spread = kernel.spread[h][lag].item<double>();
      s.x.push_back(double(lag + 1));
      s.y.push_back(y);
      if (kernel.draws > 1) s.low.push_back(y - spread), s.high.push_back(y + spread);
    }
    chart.series.push_back(s);
  }
  return chart;
}

}  // namespace lagwise
