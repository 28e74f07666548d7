#include "lagwise/cli/generate/music.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "lagwise/cli/generate/fluidsynth.h"
#include "lagwise/cli/terminal/piano_roll.h"
#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/data/formats/smf.h"
#include "lagwise/data/music/tokens_reach.h"

namespace lagwise::cli {
namespace {

std::vector<int32_t> ids_of(const std::vector<int64_t>& tokens) {
  return {tokens.begin(), tokens.end()};
}

bool is_bass(const data::Track& track) {
  return !track.drums() && (track.program / 8 == 4 || track.name == "bass");
}

/// Takes over what tokens of several tracks do not say.
void dress(data::Music& music, const data::Music& like) {
  if (music.tempos.empty() && !like.tempos.empty())
    music.tempos = {{0, like.tempos[0].us_per_beat}};
  if (music.tracks.size() < 2) return;  // a piano stays one
  for (data::Track& track : music.tracks)
    for (const data::Track& known : like.tracks) {
      if (known.notes.empty() || known.drums() != track.drums() ||
          is_bass(known) != is_bass(track))
        continue;
      track.program = known.program;
      break;
    }
}

int terminal_columns() {
  winsize size{};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  // Whole bars of sixteen columns, beside the names of the pitches.
  return known ? std::clamp((size.ws_col - 8) / 16 * 16, 32, 160) : 96;
}

}  // namespace

SampleMusic music_of(const data::TokenScheme& scheme, const MusicSample& sample) {
  std::vector<int64_t> whole = sample.prompt;
  whole.insert(whole.end(), sample.written.begin(), sample.written.end());
  SampleMusic music{scheme.decode(ids_of(whole)),
                    data::tokens_reach(scheme, ids_of(sample.prompt))};
  if (sample.like) dress(music.music, *sample.like);
  return music;
}

nlohmann::ordered_json music_json(const data::TokenScheme& scheme,
                                  const MusicSample& sample, int64_t trained) {
  using Json = nlohmann::ordered_json;
  const SampleMusic whole = music_of(scheme, sample);
  const data::Music& music = whole.music;
  std::vector<int64_t> seen = sample.prompt;
  seen.insert(seen.end(), sample.written.begin(), sample.written.end());
  seen.resize(std::min(seen.size(), static_cast<size_t>(trained)));
  Json tracks = Json::array();
  for (const data::Track& track : music.tracks) {
    Json notes = Json::array();
    for (const data::Note& note : track.notes)
      notes.push_back({note.start, note.end, note.pitch, note.velocity});
    tracks.push_back({{"name", track.name},
                      {"channel", track.channel},
                      {"program", track.program},
                      {"notes", notes}});
  }
  return {{"ticks_per_beat", music.ticks_per_beat},
          {"us_per_beat", music.tempos.empty() ? 500000 : music.tempos[0].us_per_beat},
          {"end", music.end},
          {"prompt_end", whole.prompt_end},
          {"trained_end", data::tokens_reach(scheme, ids_of(seen))},
          {"tracks", tracks}};
}

MusicFiles write_music(const std::string& path, const data::TokenScheme& scheme,
                       const MusicSample& sample, bool wav) {
  const auto folder = std::filesystem::path(path).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder);
  SampleMusic music = music_of(scheme, sample);
  if (!sample.prompt.empty())
    music.music.texts.push_back(
        {music.prompt_end, data::Text::kMarker, "end of the prompt"});
  MusicFiles files{path + ".mid", path + ".tokens", ""};
  data::write_smf(files.midi, music.music);
  std::string words;
  for (const auto* const part : {&sample.prompt, &sample.written})
    for (const int64_t id : *part)
      words += scheme.vocabulary().word(static_cast<int32_t>(id)) + "\n";
  data::replace_file(files.tokens, words);
  if (wav && render_wav(files.midi, path + ".wav")) files.wav = path + ".wav";
  return files;
}

std::string shown_music(const data::TokenScheme& scheme, const MusicSample& sample) {
  const SampleMusic music = music_of(scheme, sample);
  return piano_roll(music.music,
                    {.columns = terminal_columns(),
                     .prompt = music.prompt_end,
                     .colour = isatty(STDOUT_FILENO) != 0 && !std::getenv("NO_COLOR")});
}

}  // namespace lagwise::cli
