#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace lagwise {

/// The specs (core/spec.h) of the layers of a stack, in one text:
///
///     layers = item { ( ";" | "|" ) item }
///     item   = [ count "*" ] spec
///
///     "linear"                              every layer
///     "linear:map=elu1; linear; exact"      three layers
///     "3*linear:map=elu1 | exact"           four
///
/// One item without a count stands for every layer. Where a text has "|", only that
/// parts layers: `lagwise compare` needs it, because its own values are parted by ";".
/// A part that begins with key=value goes on with the spec before it, because options
/// inside an option are parted by ";" too: "linear:map=favor:features=64;norms=chi".
///
/// std::invalid_argument, beginning with `what`, says what is wrong: nothing between
/// two marks, a count below 1, or more or fewer texts than layers.
std::vector<std::string> texts_by_layer(std::string_view what, std::string_view text,
                                        int64_t layers);

/// The same text with each spec rewritten, counts kept, and "; " between.
std::string rewrite_layer_texts(
    std::string_view what, std::string_view text,
    const std::function<std::string(const std::string&)>& rewrite);

}  // namespace lagwise
