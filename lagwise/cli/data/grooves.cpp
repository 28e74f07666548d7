// `lagwise data grooves`: a corpus of accompaniments that needs no download.

#include "lagwise/data/music/grooves.h"

#include "lagwise/cli/checks.h"
#include "lagwise/cli/data/music_set_text.h"
#include "lagwise/cli/terminal/progress_line.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/sets/new_folder.h"

namespace lagwise::cli {
namespace {

struct GrooveFlags {
  std::string tokens = "groove", out;
  int styles = 24, songs = 480, seed = 1;
  bool midi = false;
};

/// One file a song: SET/midi/SPLIT/0007-bossa-7.mid
void write_midi(const GrooveFlags& flags, const std::string& set, ProgressLine& line) {
  const data::Grooves grooves(flags.styles, static_cast<uint64_t>(flags.seed));
  for (int i = 0; i < flags.songs; ++i) {
    line.show("writing MIDI files", static_cast<double>(i) / flags.songs);
    std::string style = grooves.style(grooves.style_of(i)).name;
    for (char& c : style)
      if (c == ' ') c = '-';
    const auto folder =
        std::filesystem::path(set) / "midi" / data::groove_split(i, flags.songs);
    std::filesystem::create_directories(folder);
    data::write_smf((folder / fmt::format("{:04}-{}.mid", i, style)).string(),
                    grooves.song(i));
  }
  line.clear();
}

void prepare_grooves(const GrooveFlags& flags) {
  data::NewFolder set(flags.out);
  ProgressLine line;
  const data::MusicCorpus corpus = data::make_groove_corpus(
      flags.styles, flags.songs, static_cast<uint64_t>(flags.seed), flags.tokens,
      [&](int64_t done, int64_t songs, const std::string& style) {
        line.show(fmt::format("{} of {} songs, {}", done, songs, style),
                  static_cast<double>(done) / static_cast<double>(songs));
      });
  line.clear();
  data::write_music_set(set.path(), corpus);
  if (flags.midi) write_midi(flags, set.path(), line);
  set.commit();
  fmt::print("{}", corpus_text(set.name(), corpus));
  if (flags.midi) fmt::print("{} MIDI files in {}/midi\n", flags.songs, set.name());
}

void add_data_grooves(CLI::App& data) {
  CLI::App* verb = data.add_subcommand(
      "grooves",
      "Make accompaniments for drums, bass and chords. The last tenth of the songs is "
      "the split test, the tenth before it valid");
  const auto flags = std::make_shared<GrooveFlags>();
  verb->add_option("--styles", flags->styles, "How many bands play, 1 to 4096")
      ->check(whole_number(1, 4096))
      ->capture_default_str();
  verb->add_option("--songs", flags->songs, "How many songs, 3 to 1000000")
      ->check(whole_number(3, 1000000))
      ->capture_default_str();
  verb->add_option("--seed", flags->seed, "Other bands and songs, 0 to 1000000000")
      ->check(whole_number(0, 1000000000))
      ->capture_default_str();
  verb->add_option("--tokens", flags->tokens,
                   "How music becomes tokens: groove, groove:velocities=8, remi")
      ->capture_default_str();
  verb->add_flag("--midi", flags->midi, "Write the songs as MIDI files too");
  verb->add_option("--out", flags->out, "Write the set to this folder")
      ->required()
      ->check(file_name());
  verb->callback([flags] { prepare_grooves(*flags); });
}

const RegisterVerb data_grooves_registered({.name = "data grooves",
                                            .place = 1,
                                            .add = add_data_grooves});

}  // namespace
}  // namespace lagwise::cli
