#pragma once

#include <string>
#include <vector>

#include "lagwise/encodings/encoding.h"

namespace lagwise::cli {

/// A row of the table of encodings with the traits of its example.
struct EncodingFacts {
  std::string name, summary, paper, example;
  Traits traits;
  int64_t axes = 1;  ///< of the largest grid it takes, with whatever options
  std::vector<Spec::Option> options;
};

/// Of every encoding, by name.
std::vector<EncodingFacts> encoding_facts();

std::string stage_name(const Traits& traits);        ///< input, before_map, ...
std::string denominator_name(const Traits& traits);  ///< same, separate

/// lagwise/encodings/README.md
std::string encodings_markdown(const std::vector<EncodingFacts>& all);

}  // namespace lagwise::cli
