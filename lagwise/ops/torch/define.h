#pragma once

#include <torch/csrc/api/include/torch/version.h>
#include <torch/library.h>

#include <string>
#include <utility>

namespace lagwise::ops {

/// Registers the schema of an operator, and that torch.compile may take it as it is: it
/// has a kernel without numbers (python/lagwise/_fakes.py) and says what it writes to.
inline void define(torch::Library& library, const std::string& schema) {
#if TORCH_VERSION_MAJOR >= 2
  library.def(schema.c_str(), {at::Tag::pt2_compliant_tag});
#else
  library.def(schema.c_str());
#endif
}

/// The same for one that is made of others: torch differentiates and traces through it.
inline void define(torch::Library& library, const std::string& schema,
                   torch::CppFunction made_of_others) {
  define(library, schema);
  library.impl(schema.substr(0, schema.find('(')).c_str(), std::move(made_of_others));
}

}  // namespace lagwise::ops
