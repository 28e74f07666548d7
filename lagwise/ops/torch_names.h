#pragma once

#include <torch/csrc/api/include/torch/version.h>

#if TORCH_VERSION_MAJOR >= 2
#include <optional>
#include <string_view>
#else
#include <c10/util/Optional.h>
#include <c10/util/string_view.h>
#endif

namespace lagwise::ops {

/// The types that torch's dispatcher takes for `T?` and `str` in a schema: torch's own in
/// torch 1, those of the standard library in torch 2.
#if TORCH_VERSION_MAJOR >= 2
template <class T>
using Optional = std::optional<T>;
inline constexpr std::nullopt_t kNone = std::nullopt;
using StringView = std::string_view;
#else
template <class T>
using Optional = c10::optional<T>;
inline constexpr c10::nullopt_t kNone = c10::nullopt;
using StringView = c10::string_view;
#endif

}  // namespace lagwise::ops
