#include "lagwise/data/formats/jsb.h"

#include <nlohmann/json.hpp>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/mapped_file.h"
#include "lagwise/data/formats/strict_json.h"

namespace lagwise::data {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostJsbBytes = size_t{64} << 20;

/// Walks the tree; the path to the mistake stands for an offset, which a tree has not.
class JsbReader {
 public:
  explicit JsbReader(const std::string& file) : file_(file) {}

  std::vector<Chorale> split(const std::string& name, const Json& list) {
    std::vector<Chorale> chorales;
    require(list.is_array() && !list.empty(), name, "a list of chorales");
    for (size_t i = 0; i < list.size(); ++i)
      chorales.push_back(chorale(name + "[" + std::to_string(i) + "]", list[i]));
    return chorales;
  }

 private:
  Chorale chorale(const std::string& place, const Json& steps) {
    Chorale chorale;
    require(steps.is_array() && !steps.empty(), place, "a list of steps");
    for (size_t i = 0; i < steps.size(); ++i) {
      const Json& step = steps[i];
      const auto holds = [&](bool holds, const char* expected) {
        if (!holds) require(false, place + "[" + std::to_string(i) + "]", expected);
      };
      holds(step.is_array() && step.size() == 4, "four voices");
      std::array<int, 4>& voices = chorale.emplace_back();
      for (size_t v = 0; v < 4; ++v) {
        holds(step[v].is_number_integer(), "whole numbers");
        // An unsigned number beyond 2^63 would turn negative.
        const bool pitch =
            step[v].is_number_unsigned() && step[v].get<uint64_t>() < 128;
        const bool rest = !step[v].is_number_unsigned() && step[v] == -1;
        holds(pitch || rest, "pitches from 0 to 127, or -1 for a rest");
        voices[v] = step[v].get<int>();
      }
    }
    return chorale;
  }

  void require(bool holds, const std::string& place,
               const std::string& expected) const {
    if (!holds) throw DataError(file_, -1, expected + " at " + place);
  }

  const std::string& file_;
};

}  // namespace

std::map<std::string, std::vector<Chorale>> parse_jsb(const std::string& name,
                                                      Bytes bytes) {
  if (bytes.size() > kMostJsbBytes)
    throw DataError(name, static_cast<int64_t>(kMostJsbBytes),
                    "at most 64 MB of chorales");
  JsonLimits limits;
  limits.values = 8000000;
  const Json tree = parse_strict_json(name, 0, bytes, limits);
  if (!tree.is_object() || tree.empty())
    throw DataError(name, 0, "an object with train, valid and test");
  std::map<std::string, std::vector<Chorale>> splits;
  for (const auto& [split, list] : tree.items()) {
    if (split != "train" && split != "valid" && split != "test")
      throw DataError(name, 0,
                      "train, valid and test, got '" + split.substr(0, 40) + "'");
    splits[split] = JsbReader(name).split(split, list);
  }
  return splits;
}

std::map<std::string, std::vector<Chorale>> read_jsb(const std::string& file) {
  const MappedFile mapped(file);
  return parse_jsb(file, mapped.bytes());
}

Music chorale_music(const Chorale& chorale) {
  constexpr const char* kVoices[] = {"soprano", "alto", "tenor", "bass"};
  constexpr int kChoir = 52;
  Music music;
  music.ticks_per_beat = 4;
  for (size_t v = 0; v < 4; ++v) {
    Track track{kVoices[v], static_cast<int>(v), kChoir, {}, {}};
    for (size_t i = 0; i < chorale.size(); ++i) {
      const int pitch = chorale[i][v];
      const auto now = static_cast<int64_t>(i);
      if (pitch < 0) continue;
      if (i > 0 && chorale[i - 1][v] == pitch)
        track.notes.back().end = now + 1;
      else
        track.notes.push_back({now, now + 1, pitch, 80});
    }
    music.tracks.push_back(std::move(track));
  }
  tidy(music);
  return music;
}

}  // namespace lagwise::data
