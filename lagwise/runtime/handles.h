#pragma once

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "lagwise/runtime/lagwise.h"
#include "lagwise/runtime/model.h"

// What the handles of lagwise.h are.

struct lagwise_model {
  explicit lagwise_model(std::unique_ptr<lagwise::runtime::Model> from)
      : model(std::move(from)), words(model->text("words")) {}
  std::unique_ptr<lagwise::runtime::Model> model;
  std::string words;
};

struct lagwise_state {
  std::unique_ptr<lagwise::runtime::State> state;
};

namespace lagwise::runtime {

/// The first line of a text, as much as there is room for.
inline void tell(char* why, size_t size, const std::string& text) {
  if (why == nullptr || size == 0) return;
  const size_t count =
      std::min(size - 1, text.find('\n') == text.npos ? text.size() : text.find('\n'));
  std::memcpy(why, text.data(), count);
  why[count] = '\0';
}

/// What act() returns, or `failed` and one line in `why`.
template <class Result, class Act>
Result caught(Result failed, char* why, size_t why_size, const Act& act) noexcept {
  try {
    return act();
  } catch (const std::exception& error) {
    tell(why, why_size, error.what());
  } catch (...) {
    tell(why, why_size, "something went wrong");
  }
  return failed;
}

}  // namespace lagwise::runtime
