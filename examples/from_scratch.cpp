// Linear attention with positions in plain loops: the program to docs/maths/start.md, whose
// sections are named below. One head, no torch. Everything is compared with the kernels of
// lagwise, which compute the same fast; the program fails where they do not agree.
//
//     make build && cmake --install build/release --prefix build/installed
//     cmake -S examples -B build/examples -DCMAKE_PREFIX_PATH="$PWD/build/installed"
//     cmake --build build/examples --target from_scratch && build/examples/from_scratch
//
// prints a line for each comparison, with the largest difference:
//
//     from_scratch: chunks of 7                      agrees (3.6e-15)
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "lagwise/kernels/key_value_gradient.h"
#include "lagwise/kernels/linear_attention.h"
#include "lagwise/kernels/rotate.h"

struct Matrix {
  int64_t rows, cols;
  std::vector<double> data;
  Matrix(int64_t r, int64_t c, double x = 0) : rows(r), cols(c), data(r * c, x) {}
  double& operator()(int64_t i, int64_t j) { return data[i * cols + j]; }
  double operator()(int64_t i, int64_t j) const { return data[i * cols + j]; }
};

// Section 3, the recurrence; g is the decay of section 6, or 1.
//     S_i = g S_{i-1} + k_i^T v_i,    num_i = q_i S_i
Matrix attend(const Matrix& q, const Matrix& k, const Matrix& v, double g) {
  Matrix s(k.cols, v.cols), out(q.rows, v.cols);
  for (int64_t i = 0; i < q.rows; ++i)
    for (int64_t d = 0; d < k.cols; ++d)
      for (int64_t e = 0; e < v.cols; ++e) {
        s(d, e) = g * s(d, e) + k(i, d) * v(i, e);
        out(i, e) += q(i, d) * s(d, e);
      }
  return out;
}

// Section 4, the same in chunks of c rows: row a of a chunk reads the state before the
// chunk and the rows b <= a of the chunk; then the state moves on by the whole chunk.
Matrix attend_in_chunks(const Matrix& q, const Matrix& k, const Matrix& v, double g,
                        int64_t c) {
  Matrix s(k.cols, v.cols), out(q.rows, v.cols);
  for (int64_t first = 0; first < q.rows; first += c) {
    const int64_t end = std::min(first + c, q.rows);
    for (int64_t i = first; i < end; ++i) {
      for (int64_t d = 0; d < k.cols; ++d)
        for (int64_t e = 0; e < v.cols; ++e)
          out(i, e) += std::pow(g, i - first + 1) * q(i, d) * s(d, e);
      for (int64_t j = first; j <= i; ++j) {
        double score = 0;
        for (int64_t d = 0; d < k.cols; ++d) score += q(i, d) * k(j, d);
        for (int64_t e = 0; e < v.cols; ++e)
          out(i, e) += std::pow(g, i - j) * score * v(j, e);
      }
    }
    for (double& x : s.data) x *= std::pow(g, end - first);
    for (int64_t j = first; j < end; ++j)
      for (int64_t d = 0; d < k.cols; ++d)
        for (int64_t e = 0; e < v.cols; ++e)
          s(d, e) += std::pow(g, end - 1 - j) * k(j, d) * v(j, e);
  }
  return out;
}

Matrix reversed(const Matrix& x) {  // last row first: then time runs backwards
  Matrix y(x.rows, x.cols);
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t j = 0; j < x.cols; ++j) y(i, j) = x(x.rows - 1 - i, j);
  return y;
}

Matrix joined(const Matrix& x, const Matrix& column) {  // [x | column]
  Matrix y(x.rows, x.cols + 1);
  for (int64_t i = 0; i < x.rows; ++i) {
    for (int64_t j = 0; j < x.cols; ++j) y(i, j) = x(i, j);
    y(i, x.cols) = column(i, 0);
  }
  return y;
}

// Section 3: out = num / den, where den is num for values that are all 1.
struct Forward {
  Matrix out, den;
};
Forward forward(const Matrix& q, const Matrix& k, const Matrix& v, double g) {
  Forward f{attend(q, k, v, g), attend(q, k, Matrix(v.rows, 1, 1.0), g)};
  for (int64_t i = 0; i < v.rows; ++i)
    for (int64_t e = 0; e < v.cols; ++e) f.out(i, e) /= f.den(i, 0);
  return f;
}

// Section 5: the whole backward pass is `attend`, three times.
struct Backward {
  Matrix num, den;  // the gradients of num and den: G and c
  Matrix q, k, v;
};
Backward backward(const Matrix& q, const Matrix& k, const Matrix& v, double g,
                  const Forward& f, const Matrix& d_out) {
  Matrix G(v.rows, v.cols), c(v.rows, 1);
  for (int64_t i = 0; i < v.rows; ++i)
    for (int64_t e = 0; e < v.cols; ++e) {
      G(i, e) = d_out(i, e) / f.den(i, 0);
      c(i, 0) -= d_out(i, e) * f.out(i, e) / f.den(i, 0);
    }
  const Matrix Gc = joined(G, c), v1 = joined(v, Matrix(v.rows, 1, 1.0));
  const Matrix dq = attend(Gc, v1, k, g);
  const Matrix dk = reversed(attend(reversed(v1), reversed(Gc), reversed(q), g));
  const Matrix dv = reversed(attend(reversed(k), reversed(q), reversed(G), g));
  return {G, c, dq, dk, dv};
}

// Section 7: plane p, the coordinates 2p and 2p + 1, of row i turns by the angle
// (start + i) theta_p. sign = -1 turns back, which is also the gradient's way.
Matrix turned(const Matrix& x, const Matrix& theta, int64_t start, double sign) {
  Matrix y = x;
  for (int64_t i = 0; i < x.rows; ++i)
    for (int64_t p = 0; p < theta.cols; ++p) {
      const double angle = sign * static_cast<double>(start + i) * theta(0, p);
      const double a = x(i, 2 * p), b = x(i, 2 * p + 1);
      y(i, 2 * p) = std::cos(angle) * a - std::sin(angle) * b;
      y(i, 2 * p + 1) = std::cos(angle) * b + std::sin(angle) * a;
    }
  return y;
}

// Section 7, with positions from `start` on: the numerator has turned features, the
// denominator those before the turn.
Forward forward_turned(const Matrix& q, const Matrix& k, const Matrix& v, double g,
                       const Matrix& theta, int64_t start) {
  Forward f{attend(turned(q, theta, start, 1), turned(k, theta, start, 1), v, g),
            attend(q, k, Matrix(v.rows, 1, 1.0), g)};
  for (int64_t i = 0; i < v.rows; ++i)
    for (int64_t e = 0; e < v.cols; ++e) f.out(i, e) /= f.den(i, 0);
  return f;
}

Matrix sum(Matrix x, const Matrix& y) {
  for (size_t i = 0; i < x.data.size(); ++i) x.data[i] += y.data[i];
  return x;
}

// Section 7: the gradients of q and k come on two ways. Through the numerator, turned
// back; and through the denominator, whose values are a single column of 1.
Backward backward_turned(const Matrix& q, const Matrix& k, const Matrix& v, double g,
                         const Matrix& theta, const Forward& f, const Matrix& d_out) {
  const Backward shared = backward(q, k, v, g, f, d_out);  // for G and c alone
  const Matrix &G = shared.num, &c = shared.den, ones(v.rows, 1, 1.0);
  const Matrix q1 = turned(q, theta, 0, 1), k1 = turned(k, theta, 0, 1);
  const Matrix dq1 = attend(G, v, k1, g);
  const Matrix dk1 = reversed(attend(reversed(v), reversed(G), reversed(q1), g));
  const Matrix dv = reversed(attend(reversed(k1), reversed(q1), reversed(G), g));
  const Matrix dq2 = attend(c, ones, k, g);
  const Matrix dk2 = reversed(attend(reversed(ones), reversed(c), reversed(q), g));
  return {G, c, sum(turned(dq1, theta, 0, -1), dq2),
          sum(turned(dk1, theta, 0, -1), dk2), dv};
}

// Section 8: all that is kept between one token and the next.
struct Step {
  Matrix s, z;     // of turned keys, and of those before the turn
  int64_t at = 0;  // the position of the next token

  Matrix operator()(const Matrix& q, const Matrix& k, const Matrix& v, double g,
                    const Matrix& theta) {
    const Matrix q1 = turned(q, theta, at, 1), k1 = turned(k, theta, at, 1);
    Matrix out(1, v.cols);
    double den = 0;
    for (int64_t d = 0; d < k.cols; ++d) {
      z(0, d) = g * z(0, d) + k(0, d);
      den += q(0, d) * z(0, d);
      for (int64_t e = 0; e < v.cols; ++e) {
        s(d, e) = g * s(d, e) + k1(0, d) * v(0, e);
        out(0, e) += q1(0, d) * s(d, e);
      }
    }
    for (double& x : out.data) x /= den;
    ++at;
    return out;
  }
};

// From here on: the comparison with lagwise::kernels, and with slopes of the loss.
namespace kernels = lagwise::kernels;

lagwise::MatView<double> view(Matrix& x) {
  return {x.data.data(), x.rows, x.cols, x.cols};
}
lagwise::MatView<const double> view(const Matrix& x) {
  return {x.data.data(), x.rows, x.cols, x.cols};
}

bool agree(const char* what, const Matrix& x, const Matrix& y) {
  bool near = x.data.size() == y.data.size();
  double worst = 0;
  for (size_t i = 0; near && i < x.data.size(); ++i) {
    const double apart = std::abs(x.data[i] - y.data[i]);
    near = apart < 1e-7;  // false for NaN too
    worst = std::max(worst, apart);
  }
  std::printf("from_scratch: %-32s %s (%.1e)\n", what, near ? "agrees" : "DIFFERS",
              worst);
  return near;
}

double dot(const Matrix& x, const Matrix& y) {
  double sum = 0;
  for (size_t i = 0; i < x.data.size(); ++i) sum += x.data[i] * y.data[i];
  return sum;
}

// Whether the gradient is how fast the loss changes with each number of x.
template <class Loss>
bool is_slope(const char* what, const Matrix& gradient, Matrix& x, const Loss& loss) {
  constexpr double kStep = 1e-5;
  Matrix slope(x.rows, x.cols);
  for (size_t i = 0; i < x.data.size(); ++i) {
    const double here = x.data[i];
    x.data[i] = here + kStep;
    const double above = loss();
    x.data[i] = here - kStep;
    slope.data[i] = (above - loss()) / (2 * kStep);
    x.data[i] = here;
  }
  return agree(what, gradient, slope);
}

bool check_attention(Matrix& q, Matrix& k, Matrix& v, double g, const Matrix& d_out) {
  const int64_t n = q.rows, width = q.cols, value_width = v.cols;
  const Forward f = forward(q, k, v, g);
  const Backward b = backward(q, k, v, g, f, d_out);
  bool ok = agree("chunks of 7", attend_in_chunks(q, k, v, g, 7), attend(q, k, v, g));

  const Matrix log_decay(1, 1, std::log(g)), ones(n, 1, 1.0);
  const kernels::Decay<double> decay{kernels::Decay<double>::By::head,  // one g for all
                                     view(log_decay)};
  // Kernels allocate nothing. Room for all three calls below:
  std::vector<double> scratch(static_cast<size_t>(
      kernels::linear_scratch<double>(width, value_width) +
      kernels::linear_scratch<double>(value_width + 1, width) +
      kernels::key_value_gradient_scratch<double>(width, value_width)));
  Matrix s(width, value_width), z(1, width), out(n, value_width), den(n, 1);
  kernels::Denominator<double> divide;
  divide.from = kernels::Denominator<double>::From::features;
  divide.den = view(den), divide.z = z.data.data();
  kernels::causal_linear<double>({.x = view(q)}, {.x = view(k)}, {.x = view(v)}, decay,
                                 divide, view(s), {.out = view(out)}, scratch.data());
  ok &= agree("out", f.out, out) & agree("denominator", f.den, den);

  // `extra` is the one more column: [G | c] and [v | 1].
  Matrix sum_vk(value_width + 1, width), dq(n, width);  // the state of the pass for dq
  kernels::causal_linear<double>(
      {.x = view(b.num), .extra = view(b.den)}, {.x = view(v), .extra = view(ones)},
      {.x = view(k)}, decay, {}, view(sum_vk), {.out = view(dq)}, scratch.data());
  Matrix sum_qg(width, value_width), sum_qc(1, width), dk(n, width), dv(n, value_width);
  kernels::key_value_gradient<double>(  // both in one pass
      {.x = view(q).reversed()},
      {.x = view(b.num).reversed(), .extra = view(b.den).reversed()},
      {.x = view(k).reversed()},
      {.x = view(v).reversed(), .extra = view(ones).reversed()}, decay, view(sum_qg),
      sum_qc.data.data(), {.out = view(dk).reversed()}, {.out = view(dv).reversed()},
      scratch.data());
  ok &= agree("dq", b.q, dq) & agree("dk", b.k, dk) & agree("dv", b.v, dv);

  const auto loss = [&] { return dot(d_out, forward(q, k, v, g).out); };
  return ok & is_slope("dq is the slope", b.q, q, loss) &
         is_slope("dk is the slope", b.k, k, loss) &
         is_slope("dv is the slope", b.v, v, loss);
}

bool check_rotation(Matrix& q, Matrix& k, Matrix& v, double g, const Matrix& theta,
                    const Matrix& d_out) {
  const int64_t planes = theta.cols;
  Matrix table(q.rows, 2 * planes), there(q.rows, q.cols), back(q.rows, q.cols);
  for (int64_t i = 0; i < q.rows; ++i)
    for (int64_t p = 0; p < planes; ++p) {
      table(i, p) = std::cos(static_cast<double>(i) * theta(0, p));
      table(i, planes + p) = std::sin(static_cast<double>(i) * theta(0, p));
    }
  const auto pairs = kernels::Pairs::interleaved;
  kernels::rotate<double>(view(q), view(table), pairs, /*opposite=*/false, view(there));
  kernels::rotate<double>(view(q), view(table), pairs, /*opposite=*/true, view(back));
  const auto out_from = [&](int64_t start) {
    return forward_turned(q, k, v, g, theta, start).out;
  };
  const Backward b =
      backward_turned(q, k, v, g, theta, forward_turned(q, k, v, g, theta, 0), d_out);
  const auto loss = [&] { return dot(d_out, out_from(0)); };
  return agree("rotation", turned(q, theta, 0, 1), there) &
         agree("rotation back", turned(q, theta, 0, -1), back) &
         agree("positions from 0 and from 1000", out_from(0), out_from(1000)) &
         is_slope("dq through the rotation", b.q, q, loss) &
         is_slope("dk through the rotation", b.k, k, loss) &
         is_slope("dv through the rotation", b.v, v, loss);
}

// Token by token the output is the same.
bool check_steps(const Matrix& q, const Matrix& k, const Matrix& v, double g,
                 const Matrix& theta) {
  const auto row = [](const Matrix& x, int64_t i) {
    Matrix y(1, x.cols);
    for (int64_t j = 0; j < x.cols; ++j) y(0, j) = x(i, j);
    return y;
  };
  Step step{Matrix(q.cols, v.cols), Matrix(1, q.cols)};
  Matrix out(q.rows, v.cols);
  for (int64_t i = 0; i < q.rows; ++i) {
    const Matrix o = step(row(q, i), row(k, i), row(v, i), g, theta);
    for (int64_t e = 0; e < v.cols; ++e) out(i, e) = o(0, e);
  }
  return agree("one token after another", forward_turned(q, k, v, g, theta, 0).out,
               out);
}

int main() {
  uint32_t state = 1;
  const auto random = [&](int64_t rows, int64_t cols) {
    Matrix x(rows, cols);  // positive, as the features of section 2
    for (double& u : x.data)
      u = ((state = state * 1664525u + 1013904223u) >> 8) / 16777216.0;
    return x;
  };
  Matrix q = random(45, 8), k = random(45, 8), v = random(45, 6);
  const Matrix d_out = random(45, 6), theta = random(1, 4);
  const bool ok = check_attention(q, k, v, 0.9, d_out) &
                  check_rotation(q, k, v, 0.9, theta, d_out) &
                  check_steps(q, k, v, 0.9, theta);
  return ok ? 0 : 1;
}
