#include "lagwise/runtime/pass.h"

#include <algorithm>
#include <cmath>

#include "lagwise/kernels/gelu.h"
#include "lagwise/kernels/rms_norm.h"
#include "lagwise/kernels/turn_table.h"

namespace lagwise::runtime {
namespace {

using kernels::kPanelOutputs;

float softplus(float x) { return x > 20 ? x : std::log1p(std::exp(x)); }
float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }

/// y = (x - mean) / sqrt(variance + eps), times a gain, plus a bias where there is one.
void centre_row(const float* x, int64_t count, double eps, const float* gain,
                const float* bias, float* y) {
  double sum = 0, squares = 0;
  for (int64_t j = 0; j < count; ++j) sum += static_cast<double>(x[j]);
  const double mean = sum / static_cast<double>(count);
  for (int64_t j = 0; j < count; ++j) {
    const double away = static_cast<double>(x[j]) - mean;
    squares += away * away;
  }
  const auto inverse =
      static_cast<float>(1 / std::sqrt(squares / static_cast<double>(count) + eps));
  const auto centre = static_cast<float>(mean);
  for (int64_t j = 0; j < count; ++j)
    y[j] = (x[j] - centre) * inverse * gain[j] + (bias ? bias[j] : 0.0f);
}

/// Asks memory for numbers that will be read and written soon: the states of many texts
/// do not fit the caches beside the weights.
void ask_ahead(const float* from, int64_t count) {
  constexpr int64_t kLine = 16;
  for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(from + i, 1, 2);
}

/// Rows of whole panels: the columns past the last are there, and not used.
MatView<const float> first_columns(MatView<float> x, int64_t columns) {
  return x.columns(0, columns);
}

}  // namespace

void Workspace::Block::make(int64_t columns) {
  width = (columns + kPanelOutputs - 1) / kPanelOutputs * kPanelOutputs;
  memory.resize(static_cast<size_t>(Model::kMostRows * width));
}

Workspace::Workspace(const Plan& plan, const std::vector<LayerKinds>& kinds,
                     int threads)
    : places(plan, Model::kMostRows) {
  x.make(plan.dim), normed.make(plan.dim);
  mixed.make(plan.mixed_columns() + plan.value_columns());
  gates.make(2 * plan.heads);
  heads.make(plan.value_columns());
  wide.make(plan.feed_forward);
  logits.make(plan.vocabulary);
  for (int i = 0; i < threads; ++i) {
    steps.emplace_back(plan, kinds);
    convolved.emplace_back(static_cast<size_t>(2 * plan.key_dim + plan.value_dim));
  }
  inv_size.resize(Model::kMostRows);
}

Pass::Pass(const Model& model, Workspace& work, ThreadPool* pool)
    : model_(model), plan_(model.plan()), work_(work), pool_(pool) {}

/// work(part) on all threads.
template <class Work>
void Pass::share(const Work& work) {
  if (pool_ != nullptr)
    pool_->run(work);
  else
    work(ThreadPool::Part{0, 1, 0});
}

/// y = x W^T + b, or with `add` y += x W^T + b; then after(begin, end) of the columns
/// that a thread has computed.
template <class After>
void Pass::product(const Dense& dense, MatView<const float> x, MatView<float> y,
                   bool add, const After& after) {
  share([&](const ThreadPool::Part& part) {
    const int64_t panels = dense.w.panels();
    const int64_t first = part.first(panels), last = part.last(panels);
    if (first == last) return;
    kernels::few_rows(dense.w, first, last, x, y, {dense.bias, add});
    after(first * kPanelOutputs, std::min(dense.w.outputs, last * kPanelOutputs));
  });
}

void Pass::run(std::span<const Row> rows) {
  rows_ = rows, count_ = static_cast<int64_t>(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    positions_[i] = rows[i].state->position();
    rows[i].state->take(rows[i].token);  // the next row may be of the same text
  }
  work_.places.stand_at(positions_, count_);
  embed();
  for (size_t i = 0; i < plan_.one.layers.size(); ++i) layer(i);
  give_logits();
}

void Pass::embed() {
  const MatView<float> x = work_.x.rows(count_);
  const auto root = static_cast<float>(std::sqrt(static_cast<double>(plan_.dim)));
  for (int64_t i = 0; i < count_; ++i) {
    float* const row = x.row(i);
    kernels::unpack_row(model_.weights_.embed.w, rows_[static_cast<size_t>(i)].token,
                        row);
    for (int64_t j = 0; j < plan_.dim; ++j) row[j] *= root;
    add_inputs(positions_[i], row);
  }
}

void Pass::add_inputs(int64_t position, float* x) const {
  for (const OneTokenInput& input : plan_.one.inputs) {
    if (!input.table.empty())
      for (int64_t j = 0; j < plan_.dim; ++j)
        x[j] += input.table[position * plan_.dim + j];
    for (int64_t a = 0; a < input.frequency.size(); ++a) {
      const kernels::Turn turn =
          kernels::turn(static_cast<double>(position), input.frequency[a]);
      if (input.sine_at[a] >= 0) x[input.sine_at[a]] += static_cast<float>(turn.s);
      if (input.cosine_at[a] >= 0) x[input.cosine_at[a]] += static_cast<float>(turn.c);
    }
  }
}

void Pass::norm_rows(const NormWeights& norm, MatView<float> x, MatView<float> y) {
  const int64_t c = plan_.dim;
  if (norm.bias == nullptr)
    return kernels::rms_norm<float>(x.columns(0, c), {norm.gain, 1, c, c},
                                    plan_.norm_eps, y.columns(0, c),
                                    work_.inv_size.data());
  for (int64_t i = 0; i < x.rows; ++i)
    centre_row(x.row(i), c, plan_.norm_eps, norm.gain, norm.bias, y.row(i));
}

/// What a part of a layer reads: x itself, or its norm.
MatView<const float> Pass::normed(const NormWeights& norm, MatView<float> x) {
  if (!plan_.pre_norm) return first_columns(x, plan_.dim);
  const MatView<float> y = work_.normed.rows(count_);
  norm_rows(norm, x, y);
  return first_columns(y, plan_.dim);
}

void Pass::layer(size_t index) {
  const LayerWeights& weights = model_.weights_.layers[index];
  const MatView<float> x = work_.x.rows(count_);
  attend(index, normed(weights.attention_norm, x));
  add_dense(weights.out,
            first_columns(work_.heads.rows(count_), plan_.value_columns()));
  if (!plan_.pre_norm) norm_rows(weights.attention_norm, x, x);

  const MatView<float> wide = work_.wide.rows(count_);
  product(weights.feed_in, normed(weights.feed_norm, x), wide, false,
          [&](int64_t begin, int64_t end) {
            const MatView<float> some = wide.columns(begin, end);
            kernels::gelu<float>(some, nullptr, some);
          });
  add_dense(weights.feed_out, first_columns(wide, plan_.feed_forward));
  if (!plan_.pre_norm) norm_rows(weights.feed_norm, x, x);
}

/// x += y W^T + b
void Pass::add_dense(const Dense& dense, MatView<const float> y) {
  product(dense, y, work_.x.rows(count_), true, [](int64_t, int64_t) {});
}

void Pass::attend(size_t index, MatView<const float> y) {
  const LayerWeights& weights = model_.weights_.layers[index];
  product(weights.mixed, y, work_.mixed.rows(count_), false, [](int64_t, int64_t) {});
  gate(index, y);
  share([&](const ThreadPool::Part& part) {
    const int64_t last = part.last(plan_.heads);
    for (int64_t head = part.first(plan_.heads); head < last; ++head)
      attend_head(index, head, part.thread);
  });
  finish_heads(index);
}

/// The forget gate, -e^rho softplus(w . y + beta), and the write gate, sigmoid(u . y), of
/// every row: few numbers.
void Pass::gate(size_t index, MatView<const float> y) {
  const LayerWeights& weights = model_.weights_.layers[index];
  if (weights.gates.w.outputs == 0) return;
  const OneTokenMemory& memory = plan_.one.layers[index].memory;
  const MatView<float> gates = work_.gates.rows(count_);
  kernels::few_rows(weights.gates.w, 0, weights.gates.w.panels(), y, gates);
  for (int64_t i = 0; i < count_; ++i)
    for (int64_t h = 0; h < plan_.heads; ++h) {
      float &forget = gates(i, h), &write = gates(i, plan_.heads + h);
      if (memory.forgets)
        forget = -weights.forget_rate[h] * softplus(forget + weights.gates.bias[h]);
      if (memory.rewrites) write = sigmoid(write);
    }
}

/// All rows of one head, in their order.
void Pass::attend_head(size_t index, int64_t head, int thread) {
  const OneTokenMemory& memory = plan_.one.layers[index].memory;
  const StateLayout::Layer& layout = model_.layout().layer(index);
  const MatView<float> heads = work_.heads.rows(count_);
  const MatView<float> gates = work_.gates.rows(count_);
  const int64_t d = plan_.key_dim, e = plan_.value_dim;
  const auto state_of = [&](int64_t i) {
    return rows_[static_cast<size_t>(i)].state->at(layout.heads +
                                                   head * layout.head_size);
  };
  for (int64_t i = 0; i < count_; ++i) {
    if (i + 1 < count_) ask_ahead(state_of(i + 1), layout.head_size);
    const float* const qkv = convolve(index, i, head, thread);
    HeadRow row{};
    row.layer = index, row.head = head, row.row = i, row.position = positions_[i];
    row.q = qkv, row.k = qkv + d, row.v = qkv + 2 * d;
    if (memory.forgets) row.log_decay = &gates(i, head);
    if (memory.rewrites) row.write_strength = &gates(i, plan_.heads + head);
    row.state = state_of(i);
    row.out = heads.row(i) + head * e;
    work_.steps[static_cast<size_t>(thread)].run(row, work_.places);
  }
}

/// q, k and v of one head side by side, mixed with those of the tokens before where the
/// layer does that: y_t = sum_j taps_j x_(t-j).
const float* Pass::convolve(size_t index, int64_t row, int64_t head, int thread) {
  const OneTokenMemory& memory = plan_.one.layers[index].memory;
  const int64_t d = plan_.key_dim, e = plan_.value_dim, all = plan_.mixed_columns();
  const float* const from = work_.mixed.rows(count_).row(row);
  const float* const taps = model_.weights_.layers[index].taps;  // null: no convolution
  float* const to = work_.convolved[static_cast<size_t>(thread)].data();
  float* const recent =
      rows_[static_cast<size_t>(row)].state->at(model_.layout().layer(index).recent);
  const int64_t before = std::max<int64_t>(0, memory.convolution - 1);
  const struct {
    int64_t from, to, width;
  } parts[] = {{head * d, 0, d},
               {plan_.query_columns() + head * d, d, d},
               {2 * plan_.query_columns() + head * e, 2 * d, e}};
  for (const auto& part : parts)
    for (int64_t j = 0; j < part.width; ++j) {
      const int64_t column = part.from + j;
      float sum = from[column];
      if (memory.convolution > 0) sum *= taps[column];
      float shifted = from[column];
      for (int64_t back = 0; back < before; ++back) {
        float& kept = recent[back * all + column];
        sum += taps[(back + 1) * all + column] * kept;
        std::swap(kept, shifted);
      }
      to[part.to + j] = sum;
    }
  return to;
}

/// What concerns all heads of a row together: its norm, the gate of the output.
void Pass::finish_heads(size_t index) {
  const OneTokenMemory& memory = plan_.one.layers[index].memory;
  const MatView<float> heads = work_.heads.rows(count_);
  const int64_t width = plan_.value_columns();
  if (memory.norm == "layer_concat")
    for (int64_t i = 0; i < count_; ++i)
      centre_row(heads.row(i), width, memory.norm_eps, model_.kinds_[index].gain.data(),
                 nullptr, heads.row(i));
  if (!memory.gates_output) return;
  const MatView<float> gate = work_.mixed.rows(count_).columns(
      plan_.mixed_columns(), plan_.mixed_columns() + width);
  kernels::map_rows<float>({kernels::FeatureMap::Kind::silu}, gate, gate);
  for (int64_t i = 0; i < count_; ++i)
    for (int64_t j = 0; j < width; ++j) heads.row(i)[j] *= gate.row(i)[j];
}

/// Of the rows that want them, side by side.
void Pass::give_logits() {
  const MatView<float> x = work_.x.rows(count_), y = work_.normed.rows(count_);
  int64_t wanted = 0;
  for (int64_t i = 0; i < count_; ++i) {
    if (!rows_[static_cast<size_t>(i)].wants_logits) continue;
    norm_rows(model_.weights_.norm, x.slice(i, i + 1), y.slice(wanted, wanted + 1));
    ++wanted;
  }
  if (wanted == 0) return;
  const MatView<float> logits = work_.logits.rows(wanted);
  product(model_.weights_.head, first_columns(work_.normed.rows(wanted), plan_.dim),
          logits, false, [](int64_t, int64_t) {});
  int64_t next = 0;
  for (const Row& row : rows_)
    if (row.wants_logits)
      std::copy_n(logits.row(next++), plan_.vocabulary, row.state->logits_to_write());
}

}  // namespace lagwise::runtime
