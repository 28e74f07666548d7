#include "lagwise/bindings/part.h"

#include <stdexcept>

#include "lagwise/core/registry.h"

namespace lagwise::bindings {
namespace {

Registry<PartRow>& parts() {
  static Registry<PartRow> registry("part");
  return registry;
}

}  // namespace

Inputs::Inputs(const std::vector<at::Tensor>& tensors,
               const std::vector<std::string>& names) {
  if (tensors.size() != names.size())
    throw std::invalid_argument("expected a name for each of " +
                                std::to_string(tensors.size()) + " tensors, got " +
                                std::to_string(names.size()));
  for (size_t i = 0; i < names.size(); ++i) by_name_[names[i]] = tensors[i];
}

at::Tensor Inputs::operator[](std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? at::Tensor() : found->second;
}

at::Tensor Inputs::need(std::string_view name) const {
  if (!has(name))
    throw std::invalid_argument("expected a tensor '" + std::string(name) +
                                "', got none");
  return (*this)[name];
}

int64_t Inputs::number(std::string_view name, int64_t place) const {
  const at::Tensor given = (*this)[name];
  return given.defined() ? given[place].item<int64_t>() : 0;
}

Draw Inputs::draw() const {
  Draw draw;
  draw.seed = static_cast<uint64_t>(number("draw", 0));
  draw.step = number("draw", 1), draw.micro_step = number("draw", 2);
  return draw;
}

RegisterPart::RegisterPart(PartRow row) { parts().add(row); }

std::unique_ptr<Part> make_part(const std::string& text) {
  const Json config = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!config.is_object())
    throw std::invalid_argument("expected a part as a JSON object, got " + text);
  return parts().find(entry<std::string>(config, "part", "")).make(config);
}

}  // namespace lagwise::bindings
