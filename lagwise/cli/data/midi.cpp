// `lagwise data midi`: a folder of MIDI files becomes a set of tokens.

#include <fmt/format.h>

#include <memory>
#include <string>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/data/music_set_text.h"
#include "lagwise/cli/terminal/progress_line.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/sets/new_folder.h"

namespace lagwise::cli {
namespace {

struct MidiFlags {
  std::string folder, tokens = "remi", out;
  int transpose = 0;
};

void prepare_midi(const MidiFlags& flags) {
  data::NewFolder set(flags.out);
  ProgressLine line;
  data::MidiReport report;
  data::MusicCorpus corpus = data::read_midi_folder(
      flags.folder, flags.tokens, &report,
      [&](int64_t done, int64_t files, const std::string& name) {
        line.show(fmt::format("{} of {} files, {}", done, files, name),
                  static_cast<double>(done) / static_cast<double>(files));
      });
  line.clear();
  const int64_t more =
      flags.transpose > 0 ? add_transposed(corpus, flags.transpose) : 0;
  corpus.source = "lagwise data midi " + flags.folder;
  data::write_music_set(set.path(), corpus);
  set.commit();
  fmt::print("{}", report_text(report));
  if (more > 0) fmt::print("{} transposed pieces added to train\n", more);
  fmt::print("{}", corpus_text(set.name(), corpus));
}

void add_data_midi(CLI::App& data) {
  CLI::App* verb = data.add_subcommand(
      "midi",
      "Turn a folder of MIDI files into tokens. Folders train, valid and test are its "
      "splits; without them the names of the files decide");
  const auto flags = std::make_shared<MidiFlags>();
  verb->add_option("folder", flags->folder, "The folder, and all below it")->required();
  verb->add_option("--tokens", flags->tokens,
                   "How music becomes tokens: remi (one piano), groove or "
                   "groove:velocities=8 (bass, drums, chords)")
      ->capture_default_str();
  verb->add_option("--transpose", flags->transpose,
                   "Add every training piece moved up and down by up to so many "
                   "semitones, 0 to 12")
      ->check(whole_number(0, 12))
      ->capture_default_str();
  verb->add_option("--out", flags->out, "Write the set to this folder")
      ->required()
      ->check(file_name());
  verb->callback([flags] { prepare_midi(*flags); });
}

const RegisterVerb data_midi_registered({.name = "data midi",
                                         .place = 6,
                                         .add = add_data_midi});

}  // namespace
}  // namespace lagwise::cli
