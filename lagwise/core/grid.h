#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lagwise {

/// Several specs (core/spec.h) in one text, as users write a comparison:
///
///     list   = item { ";" item }
///     item   = a spec in which {a,b,c} stands for each of a, b, c in turn
///
///     "none;rope:layout=half;lrpe:lambda={rotation,unitary},p={identity,odd_even}"
///
/// has six: braces are expanded from left to right, the last varying fastest. A part
/// that begins with key=value goes on with the spec before it, because options inside
/// an option are parted by ";" too: "linear:map=favor:features=64;norms=sqrt_d".
/// Spaces around parts are dropped, and so is a spec that was there before.
///
/// std::invalid_argument, beginning with `what`, says which part is wrong: nothing at
/// all between two ";", a brace without its partner or inside another, an empty choice.
std::vector<std::string> expand_grid(std::string_view what, std::string_view text);

/// The specs of a list whose items are parted by `mark`, before braces are expanded.
std::vector<std::string> split_specs(std::string_view what, std::string_view text,
                                     char mark);

/// A name for a file that stands for any text, and for no other: letters, digits and
/// "._=,-" as they are, ":" as "+", the rest as %XX.
std::string name_for_file(std::string_view text);

}  // namespace lagwise
