#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lagwise/core/one_token.h"
#include "lagwise/core/spec.h"
#include "lagwise/ops/encoded.h"
#include "lagwise/ops/head_shape.h"
#include "lagwise/ops/parameters.h"

namespace lagwise {

/// What an encoding can do and how attention must treat it.
struct Traits {
  enum class Stage { input, before_map, after_map, score };
  enum class Denominator { same, separate };

  bool exact = false, linear_causal = false, linear_full = false;  ///< what it serves
  Stage stage = Stage::after_map;               ///< where in linear attention it acts
  Denominator denominator = Denominator::same;  ///< separate: formed from features
                                                ///<   before the encoding
  int64_t dims = 1;                             ///< most axes of a grid it takes
  bool stochastic = false;            ///< scores are an estimate, right in expectation
  bool relative = true;               ///< scores depend on the lag alone
  std::string longest = "unbounded";  ///< or "table", "horizon"
  bool by_lag = false;                ///< hands over a lag_bias,
  bool decays = false;                ///<   a decay in causal attention, or both
};

/// One layer of a model, as `encode` sees it.
struct Layer {
  int64_t index = 0, count = 1;
  Parameters own = {};  ///< what Encoding::layer gave for this layer

  const at::Tensor& operator[](std::string_view name) const;
};

/// What an encoding computes once per pass over a sequence and shares between layers:
/// tables of angles, or noise (in a stream, a window of it). An encoding that prepares
/// something derives a class with its tensors by name.
class Prepared {
 public:
  virtual ~Prepared() = default;
  virtual int64_t bytes() const = 0;

 protected:
  static int64_t bytes_of(const at::Tensor& x) {
    return x.defined() ? static_cast<int64_t>(x.nbytes()) : 0;
  }
};

/// The draw of a pass, and what the encoding prepared for it.
struct Code {
  Draw draw = {};
  std::shared_ptr<const Prepared> prepared = {};

  /// What was prepared, if it is a T; else null.
  template <class T>
  const T* as() const {
    return dynamic_cast<const T*>(prepared.get());
  }
  int64_t bytes() const { return prepared ? prepared->bytes() : 0; }
};

/// A positional encoding: a producer of data. It is one file, x.cpp, with a class
/// and a registry row; nothing outside `encodings/` knows it by name.
class Encoding {
 public:
  Encoding(Traits traits, HeadShape shape)
      : traits_(std::move(traits)), shape_(shape) {}
  virtual ~Encoding() = default;

  const Traits& traits() const { return traits_; }
  const HeadShape& shape() const { return shape_; }

  /// The width D' of encoded queries and keys.
  virtual int64_t width() const { return shape_.dim; }

  /// Trained parameters of all layers together, saved as pos.*
  virtual Parameters shared() { return {}; }

  /// Fresh parameters of one layer, saved as layers.<index>.attn.pos.*
  virtual Parameters layer(int64_t index, int64_t count);

  /// The input with positions in it, [B, N, C]. Most leave it alone.
  virtual at::Tensor embed(const at::Tensor& x, const Placement& at);

  /// What all layers share in one pass. In a stream, `previous` is the code of the rows
  /// before, for encodings that keep a window of noise.
  virtual Code code(const Placement& at, const Draw& draw, int64_t queries,
                    int64_t keys, const Code* previous = nullptr);

  /// q [B, H, N, D], k [B, H, M, D]: raw, or features where the stage is after_map.
  virtual Encoded encode(const at::Tensor& q, const at::Tensor& k, const Code& code,
                         const Layer& layer, const Placement& at) = 0;

  // What it does to one token of a causal text, as data, for models that run without
  // torch (core/one_token.h). `draw` is the moment of its noise, `horizon` that of the
  // placement.

  /// What it adds to the input; most add nothing.
  virtual OneTokenInput one_token_input() const { return {}; }

  /// What it does to queries, keys and the state of a layer. Nothing comes back where it
  /// cannot be said of one token alone: tables by lag, windows of noise.
  virtual std::optional<OneTokenPlace> one_token(const Layer& layer, const Draw& draw,
                                                 int64_t horizon);

 protected:
  /// Queries and keys as they are, of width width().
  OneTokenPlace as_they_are() const;

 private:
  Traits traits_;
  HeadShape shape_;
};

/// One row of the table of encodings: printed by `lagwise encodings`, rendered to
/// lagwise/encodings/README.md, read by the contract test.
struct EncodingRow {
  std::string_view name;
  std::string_view summary;
  std::string_view paper;  ///< "arXiv:2108.12409", or empty
  std::unique_ptr<Encoding> (*make)(Spec& spec, const HeadShape& shape);
  std::string_view example =
      "";  ///< where the bare name is not enough: "rope:layout=half"
  std::string_view widest = "";  ///< that of most axes, where the example has fewer
  std::string_view older = "";   ///< options whose default was another once, as then

  std::string_view text() const { return example.empty() ? name : example; }
};

/// Adds a row. Define one per file, at namespace scope.
struct RegisterEncoding {
  explicit RegisterEncoding(EncodingRow row);
};

/// Every row, sorted by name.
const std::vector<EncodingRow>& encodings();

/// The row of a name; std::invalid_argument lists the names.
const EncodingRow& encoding_row(std::string_view name);

/// Builds an encoding from "name:key=value,...". std::invalid_argument lists the
/// legal names or options.
std::unique_ptr<Encoding> make_encoding(std::string_view text, const HeadShape& shape);

/// The options of a row with their defaults, as the maker of its example takes them.
std::vector<Spec::Option> encoding_options(const EncodingRow& row);

/// The examples of those rows that can say what they do to one token.
std::vector<std::string> encodings_of_one_token();

/// Calls `code`, then `encode`: for tests, and for callers that share no code between
/// layers. Without a `layer` it takes fresh parameters of layer 0 of 1.
Encoded encode_once(Encoding& encoding, const at::Tensor& q, const at::Tensor& k,
                    const Placement& at, const Draw& draw = {},
                    const Layer* layer = nullptr);

/// Positions of queries or keys as double [N] or [B, N]: the given ones, or start,
/// start + 1, ... Angles are formed from these, so that they hold at 10^7.
at::Tensor positions(const at::Tensor& given, int64_t start, int64_t rows);

}  // namespace lagwise
