#include "lagwise/ops/spe/sine_spe_cpu.h"

#include <ATen/Dispatch.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numbers>
#include <utility>
#include <vector>

#include "lagwise/kernels/sine_spe.h"
#include "lagwise/ops/parallel/little_work.h"

namespace lagwise::ops {
namespace {

using at::Tensor;

/// The part of the work one thread takes: a head, some positions, and all rows of a
/// batch that stand at the same positions. It is cut by shape alone, so any number of
/// threads gives the same bits.
struct Task {
  int64_t head, segment, batch_row;
};

class Tasks {
 public:
  explicit Tasks(const SineCall& call)
      : heads_(call.h), places_(std::max(call.q_at.size(0), call.k_at.size(0))) {
    const int64_t longest = std::max(call.q.size(2), call.k.size(2));
    segment_ = call.h * places_ > 4 ? 2048 : 256;
    segments_ = std::max<int64_t>(1, (longest + segment_ - 1) / segment_);
    batch_ = places_ > 1 ? 1 : call.b;
  }
  int64_t count() const { return heads_ * segments_ * places_; }
  int64_t segments() const { return segments_ * places_; }
  int64_t batch() const { return batch_; }

  Task operator[](int64_t i) const {
    return {i / (segments_ * places_), i % segments_, i / segments_ % places_};
  }
  std::pair<int64_t, int64_t> rows(const Task& task, int64_t length) const {
    const int64_t begin = std::min(task.segment * segment_, length);
    return {begin, std::min(begin + segment_, length)};
  }

 private:
  int64_t heads_, places_, segment_, segments_, batch_;
};

kernels::SineHead head_of(const SineCall& call, int64_t h) {
  const int64_t pairs = call.d * call.sines;
  return {call.d, call.sines, call.frequency.data_ptr<double>() + h * pairs,
          call.amplitude.data_ptr<double>() + h * pairs,
          call.constant.defined() ? call.constant.data_ptr<double>() + h * call.d
                                  : nullptr};
}

template <class T>
kernels::SineMix<T> mix_of(const SineCall& call, int64_t h) {
  kernels::SineMix<T> mix;
  mix.width = call.width;
  if (call.fold.defined()) {
    mix.fold = call.fold.data_ptr<int64_t>() + h * call.fold.size(1);
    return mix;
  }
  const int64_t row = call.d * call.width;
  mix.z = call.z.data_ptr<T>() + h * row * 2 * call.sines;
  if (call.gate.defined()) mix.gate = call.gate.data_ptr<T>() + h * row;
  return mix;
}

template <class T>
kernels::SineRows<T> rows_of(const Tensor& x, const Task& task, int64_t begin,
                             int64_t batch) {
  T* const data = static_cast<T*>(x.data_ptr()) + task.batch_row * x.stride(0) +
                  task.head * x.stride(1) + begin * x.stride(2);
  return {data, batch, x.stride(0), x.stride(2), x.stride(3)};
}

kernels::SineSide side_of(const Tensor& at, const Task& task, int64_t begin,
                          int64_t end, const double* phase) {
  const int64_t row = at.size(0) > 1 ? task.batch_row : 0;
  return {at.data_ptr<double>() + row * at.size(1) + begin, end - begin, phase};
}

/// Multiply-adds of a call: each row is a row of waves times a matrix [waves, width],
/// or is added up where the matrix only folds.
int64_t work_of(const SineCall& call) {
  const int64_t waves = (2 * call.sines + 1) * call.d;
  return call.b * call.h * (call.q.size(2) + call.k.size(2)) * waves *
         (call.fold.defined() ? 1 : call.width);
}

/// Calls fn(task, number, scratch) for every task, each thread with its own scratch.
template <class T, class Fn>
void for_each_task(const SineCall& call, const Tasks& tasks, const Fn& fn) {
  if (call.h == 0 || call.b == 0) return;
  const auto size =
      kernels::sine_scratch<T>(head_of(call, 0), mix_of<T>(call, 0), tasks.batch());
  const int64_t reals =
      (size.reals * int64_t{sizeof(T)} + 63) / 64 * (64 / sizeof(double));
  for_each_task_of<double>(
      work_of(call), tasks.count(), reals + size.doubles, [&](int64_t i, double* own) {
        kernels::SineScratch<T> scratch{reinterpret_cast<T*>(own), own + reals};
        fn(tasks[i], i, scratch);
      });
}

template <class T>
void forward(const SineCall& call, Tensor& q_out, Tensor& k_out) {
  const Tasks tasks(call);
  for_each_task<T>(call, tasks, [&](Task task, int64_t, auto& scratch) {
    const auto head = head_of(call, task.head);
    const auto mix = mix_of<T>(call, task.head);
    const auto side = [&](const Tensor& x, const Tensor& at, const double* phase,
                          Tensor& out) {
      const auto [begin, end] = tasks.rows(task, x.size(2));
      if (begin == end) return;
      kernels::sine_encode<T>(head, mix, side_of(at, task, begin, end, phase),
                              rows_of<const T>(x, task, begin, tasks.batch()),
                              rows_of<T>(out, task, begin, tasks.batch()), scratch);
    };
    const double* phase =
        call.turns.data_ptr<double>() + task.head * call.d * call.sines;
    side(call.q, call.q_at, phase, q_out);
    side(call.k, call.k_at, nullptr, k_out);
  });
}

/// Each task adds up in memory of its own; the sums over tasks are made afterwards, in
/// a fixed order.
template <class T>
void backward(const SineCall& call, const Tensor& dq_out, const Tensor& dk_out,
              SineGradientsOf& to) {
  const Tasks tasks(call);
  const int64_t pairs = call.d * call.sines, share = 3 * pairs + call.d;
  const Tensor sums = at::zeros({call.h, tasks.segments(), share}, at::kDouble);
  for_each_task<T>(call, tasks, [&](Task task, int64_t number, auto& scratch) {
    const auto head = head_of(call, task.head);
    const auto mix = mix_of<T>(call, task.head);
    double* const own = sums.data_ptr<double>() + number * share;
    kernels::SineGradients into{own, own + pairs, own + 2 * pairs, nullptr};
    if (call.constant.defined()) into.constant = own + 3 * pairs;
    const auto side = [&](const Tensor& x, const Tensor& at, const double* phase,
                          const Tensor& dy, Tensor& dx) {
      const auto [begin, end] = tasks.rows(task, x.size(2));
      if (begin == end) return;
      kernels::sine_gradient<T>(head, mix, side_of(at, task, begin, end, phase),
                                rows_of<const T>(x, task, begin, tasks.batch()),
                                rows_of<const T>(dy, task, begin, tasks.batch()),
                                rows_of<T>(dx, task, begin, tasks.batch()), into,
                                scratch);
    };
    side(call.q, call.q_at, call.turns.data_ptr<double>() + task.head * pairs, dq_out,
         to.q);
    into.phase = nullptr;  // of queries only
    side(call.k, call.k_at, nullptr, dk_out, to.k);
  });
  const Tensor total = sums.sum(1);
  const auto part = [&](int64_t begin, int64_t count) {
    return total.narrow(1, begin, count).clone(at::MemoryFormat::Contiguous);
  };
  const std::vector<int64_t> sizes = {call.h, call.d, call.sines};
  to.frequency = part(0, pairs).reshape(sizes);
  to.amplitude = part(pairs, pairs).reshape(sizes);
  to.phase = part(2 * pairs, pairs).reshape(sizes) / (2 * std::numbers::pi);
  if (call.constant.defined()) to.constant = part(3 * pairs, call.d);
}

}  // namespace

void sine_spe_cpu(const SineCall& call, Tensor& q_out, Tensor& k_out) {
  AT_DISPATCH_FLOATING_TYPES(call.q.scalar_type(), "sine_spe",
                             [&] { forward<scalar_t>(call, q_out, k_out); });
}

SineGradientsOf sine_spe_backward_cpu(const SineCall& call, const Tensor& dq_out,
                                      const Tensor& dk_out) {
  SineGradientsOf to;
  to.q = at::empty(call.q.sizes(), call.q.options());
  to.k = at::empty(call.k.sizes(), call.k.options());
  AT_DISPATCH_FLOATING_TYPES(call.q.scalar_type(), "sine_spe",
                             [&] { backward<scalar_t>(call, dq_out, dk_out, to); });
  return to;
}

}  // namespace lagwise::ops
