// What the page of `lagwise report` calls in the WebAssembly module: a model that plays
// on. Beside these the module has the functions of lagwise.h. Numbers are such as
// JavaScript has without ado; what goes wrong is told by throws.cpp.

#include <cstdlib>
#include <span>
#include <stdexcept>
#include <vector>

#include "lagwise/runtime/lagwise.h"
#include "lagwise/runtime/wasm/player.h"

namespace {

using lagwise::runtime::Player;

/// A player, and what it tells in a form that can be read from outside.
struct Playing {
  Playing(lagwise_model* opened, std::span<const int64_t> prompt,
          const lagwise::Sampling& sampling)
      : model(opened), player(opened, prompt, sampling) {}
  ~Playing() { lagwise_close(model); }

  double beats(int64_t tick) const {
    return static_cast<double>(tick) / player.heard().ticks_per_beat;
  }

  lagwise_model* model;
  Player player;
  std::vector<double> notes;  ///< of five numbers each
};

}  // namespace

extern "C" {

void* lagwise_allocate(size_t bytes) { return std::malloc(bytes); }

/// The bytes of the model must stay where they are. An empty one throws, as does all
/// else that is wrong with it.
Playing* lagwise_play(const void* model, size_t size, const int32_t* prompt,
                      size_t count, double temperature, double top_p, uint32_t seed) {
  char why[256] = "";
  lagwise_model* opened = lagwise_open_memory(model, size, why, sizeof why);
  if (!opened) throw std::invalid_argument(why);
  const std::vector<int64_t> tokens(prompt, prompt + count);
  return new Playing(opened, tokens,
                     {.temperature = temperature, .top_p = top_p, .seed = seed});
}

void lagwise_play_end(Playing* playing) { delete playing; }

int32_t lagwise_play_next(Playing* playing) {
  return static_cast<int32_t>(playing->player.next());
}

int32_t lagwise_play_tracks(const Playing* playing) {
  return static_cast<int32_t>(playing->player.heard().tracks.size());
}

const char* lagwise_play_track_name(const Playing* playing, int32_t track) {
  return playing->player.heard().tracks[static_cast<size_t>(track)].name.c_str();
}

double lagwise_play_beat(const Playing* playing) {
  return playing->beats(playing->player.now());
}

/// Track, start and end in beats, pitch and velocity of each note that is complete and
/// not forgotten.
const double* lagwise_play_notes(Playing* playing) {
  playing->notes.clear();
  const auto& tracks = playing->player.heard().tracks;
  for (size_t i = 0; i < tracks.size(); ++i)
    for (const lagwise::data::Note& note : tracks[i].notes)
      playing->notes.insert(
          playing->notes.end(),
          {static_cast<double>(i), playing->beats(note.start), playing->beats(note.end),
           static_cast<double>(note.pitch), static_cast<double>(note.velocity)});
  return playing->notes.data();
}

int32_t lagwise_play_note_count(const Playing* playing) {
  size_t count = 0;
  for (const lagwise::data::Track& track : playing->player.heard().tracks)
    count += track.notes.size();
  return static_cast<int32_t>(count);
}

void lagwise_play_forget(Playing* playing) { playing->player.forget(); }

}  // extern "C"
