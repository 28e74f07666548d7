#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "lagwise/ops/encoded.h"
#include "lagwise/ops/parameters.h"

namespace lagwise::bindings {

using Json = nlohmann::json;

/// The tensors of one call by name; those that are absent are undefined. Numbers that
/// change from call to call come as int64 tensors, so that a program traced by torch
/// holds for all of them: start [2], the positions of the first query and key; draw [3],
/// seed, step and micro-step of the noise.
class Inputs {
 public:
  Inputs(const std::vector<at::Tensor>& tensors, const std::vector<std::string>& names);

  bool has(std::string_view name) const { return by_name_.count(name) > 0; }
  at::Tensor operator[](std::string_view name) const;  ///< undefined where absent
  at::Tensor need(std::string_view name) const;  ///< std::invalid_argument where absent

  int64_t query_start() const { return number("start", 0); }
  int64_t key_start() const { return number("start", 1); }
  Draw draw() const;

 private:
  int64_t number(std::string_view name, int64_t place) const;

  std::map<std::string, at::Tensor, std::less<>> by_name_;
};

/// A piece of this library as other languages use it: parameters by name, and a function
/// of them and of the tensors of a call. It is made for one call, given the caller's
/// parameters (lend.h), and forgotten, so that calls share nothing.
class Part {
 public:
  virtual ~Part() = default;

  /// Every trained tensor. They are handles: what they are given, the part computes with.
  virtual Parameters parameters() const = 0;

  virtual std::vector<at::Tensor> call(const Inputs& inputs) = 0;

  /// What a caller has to know of it beside its parameters.
  virtual Json facts() const { return Json::object(); }
};

/// One kind of part: a file with a class and a row.
struct PartRow {
  std::string_view name;
  std::unique_ptr<Part> (*make)(const Json& config);
};

struct RegisterPart {
  explicit RegisterPart(PartRow row);
};

/// From {"part": NAME, ...}: one line of JSON. std::invalid_argument says what is wrong.
std::unique_ptr<Part> make_part(const std::string& text);

/// The entry of a config, or what it is where it is not given. std::invalid_argument names
/// an entry of another kind.
template <class T>
T entry(const Json& config, const char* name, T otherwise) {
  const auto found = config.find(name);
  if (found == config.end()) return otherwise;
  try {
    return found->get<T>();
  } catch (const Json::exception&) {
    throw std::invalid_argument(std::string(name) + ": expected another kind of value");
  }
}

}  // namespace lagwise::bindings
