#include "lagwise/data/sources/moving_examples.h"

#include <cmath>
#include <map>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/sources/dice.h"
#include "lagwise/data/sources/image_examples.h"

namespace lagwise::data {
namespace {

constexpr int64_t kPickStream = 0x4D57;  // of the noise: which picture a clip is of

using Shapes = std::map<std::string, std::vector<MovingShape>>;  // by split

Shapes read_shapes(const std::string& path) {
  Shapes shapes;
  read_image_examples(
      {.path = path}, [&](const std::string& split, const Example& example, double) {
        const std::vector<uint8_t> pixels(example.first.begin(), example.first.end());
        const auto side = std::llround(std::sqrt(static_cast<double>(pixels.size())));
        shapes[split].push_back(moving_shape(pixels, side));
      });
  return shapes;
}

std::vector<int32_t> clip_patches(const MovingClip& clip, const MovingMaking& making) {
  const auto frame = static_cast<size_t>(making.rules.side * making.rules.side);
  std::vector<int32_t> numbers;
  for (size_t at = 0; at < clip.pixels.size(); at += frame) {
    const std::vector<int32_t> one = image_patches(
        Bytes(clip.pixels).subspan(at, frame), making.rules.side, making.patch);
    numbers.insert(numbers.end(), one.begin(), one.end());
  }
  return numbers;
}

}  // namespace

void make_moving_examples(const MovingMaking& making, const VisitExample& visit) {
  const Moving moving(making.seed, making.rules);
  check_patch("moving", making.patch, making.rules.side);
  const Shapes shapes = making.path.empty() ? Shapes() : read_shapes(making.path);
  const auto all = static_cast<double>(making.train + making.valid + making.test);
  int64_t made = 0;
  const auto clip_of = [&](const std::string& split) {
    if (making.path.empty()) return moving.clip(made);
    const std::vector<MovingShape>& own = shapes.at(split);
    Dice dice(Noise(making.seed, kPickStream, made).at({}));
    return moving.clip(
        made, own[static_cast<size_t>(dice.pick(static_cast<int>(own.size())))]);
  };
  const auto make = [&](const std::string& split, int64_t clips) {
    if (clips > 0 && !making.path.empty() && !shapes.contains(split))
      throw DataError(making.path, -1, "pictures for the split " + split);
    for (int64_t i = 0; i < clips; ++i) {
      const MovingClip clip = clip_of(split);
      visit(split, {clip.label, clip_patches(clip, making), {}},
            static_cast<double>(++made) / all);
    }
  };
  make("test", making.test);
  make("valid", making.valid);
  make("train", making.train);
}

}  // namespace lagwise::data
