#include "lagwise/data/formats/cifar10.h"

#include "lagwise/core/errors.h"

namespace lagwise::data {

Cifar10::Cifar10(const std::string& file) : mapped_(file), bytes_(mapped_->bytes()) {
  check(file);
}

Cifar10::Cifar10(const std::string& name, Bytes bytes) : bytes_(bytes) { check(name); }

void Cifar10::check(const std::string& name) const {
  if (bytes_.empty()) throw DataError(name, 0, "a record of 3073 bytes, got nothing");
  const size_t rest = bytes_.size() % kRecord;
  if (rest != 0)
    throw DataError(
        name, static_cast<int64_t>(bytes_.size() - rest),
        "records of 3073 bytes, got " + std::to_string(rest) + " at the end");
  for (int64_t i = 0; i < size(); ++i)
    if (label(i) > 9)
      throw DataError(name, i * static_cast<int64_t>(kRecord),
                      "a label from 0 to 9, got " + std::to_string(label(i)));
}

std::vector<uint8_t> Cifar10::grey(int64_t index) const {
  const Bytes rgb = image(index);
  std::vector<uint8_t> grey(kPlane);
  for (size_t i = 0; i < kPlane; ++i) {
    const double light =
        0.2989 * rgb[i] + 0.587 * rgb[kPlane + i] + 0.114 * rgb[2 * kPlane + i];
    grey[i] = static_cast<uint8_t>(light * (255.5 / 255));
  }
  return grey;
}

}  // namespace lagwise::data
