// A folder of MIDI files as a corpus of tokens.

#include <algorithm>
#include <filesystem>
#include <optional>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/music/music_corpus.h"
#include "lagwise/data/sets/left_out.h"
#include "lagwise/data/sets/split_file.h"

namespace lagwise::data {
namespace {

namespace fs = std::filesystem;

std::string lower(std::string text) {
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// The split a path below the folder names; empty: none.
std::string named_split(const fs::path& path) {
  for (const fs::path& part : path.parent_path())
    for (const char* const split : {"train", "valid", "test"})
      if (std::ranges::count(split_names(split), lower(part.string())) > 0)
        return split;
  return "";
}

// Paths below the folder, sorted.
std::vector<fs::path> midi_paths(const std::string& folder) {
  std::error_code failed;
  std::vector<fs::path> paths;
  fs::recursive_directory_iterator entry(folder, failed), end;
  if (failed) {
    std::error_code ignored;
    const std::string why = !fs::exists(folder, ignored) ? "; nothing is there"
                            : is_midi_name(folder) ? ", got one file: name its folder"
                                                   : ": " + failed.message();
    throw DataError(folder, -1, "a folder of MIDI files" + why);
  }
  for (; entry != end; entry.increment(failed)) {
    if (is_midi_name(entry->path().string()))
      paths.push_back(entry->path().lexically_relative(folder));
  }
  if (failed) throw DataError(folder, -1, "a readable folder: " + failed.message());
  std::ranges::sort(paths);
  return paths;
}

struct Piece {
  fs::path path;
  std::vector<int32_t> ids;
  std::string split = {};
  uint64_t hash() const {
    return fnv1a(bytes_of(path.generic_string())) >> 16;  // the low bits mix badly
  }
};

// One in twenty for valid and for test; at least one of each where there are enough.
void split_by_name(std::vector<Piece>& pieces) {
  for (Piece& piece : pieces) {
    const uint64_t draw = piece.hash() % 20;
    piece.split = draw == 0 ? "valid" : draw == 1 ? "test" : "train";
  }
  size_t enough = 2;
  for (const char* const split : {"valid", "test"}) {
    if (pieces.size() < enough++) return;
    if (std::ranges::count(pieces, split, &Piece::split) > 0) continue;
    Piece* least = nullptr;
    for (Piece& piece : pieces)
      if (piece.split == "train" && (!least || piece.hash() < least->hash()))
        least = &piece;
    if (least) least->split = split;
  }
  // So few that none was left to learn from.
  if (std::ranges::count(pieces, "train", &Piece::split) == 0)
    pieces.front().split = "train";
}

void assign_splits(std::vector<Piece>& pieces) {
  bool named = false;
  for (Piece& piece : pieces) {
    piece.split = named_split(piece.path);
    named = named || !piece.split.empty();
  }
  if (!named) return split_by_name(pieces);
  for (Piece& piece : pieces)
    if (piece.split.empty()) piece.split = "train";
}

void add(SmfRepairs& sum, const SmfRepairs& one) {
  sum.unpaired_ons += one.unpaired_ons;
  sum.unpaired_offs += one.unpaired_offs;
  sum.empty_notes += one.empty_notes;
}

std::optional<std::vector<int32_t>> tokens_of(const std::string& file,
                                              const TokenScheme& scheme,
                                              MidiReport& report) {
  SmfRepairs repairs;
  Music music;
  try {
    music = read_smf(file, &repairs);
  } catch (const DataError& error) {
    report.damaged.push_back(error.what());
    return {};
  }
  tidy(music);
  Tokenised tokens = scheme.encode(music);
  if (tokens.loss.kept == 0) {
    report.silent.push_back(file);
    return {};
  }
  ++report.read;
  add(report.repairs, repairs);
  report.loss.add(tokens.loss);
  return std::move(tokens.ids);
}

}  // namespace

std::vector<std::string> MidiReport::left_out() const {
  return left_out_lines({{"damaged MIDI files", damaged},
                         {"MIDI files without a note the tokens can say", silent}});
}

bool is_midi_name(const std::string& file) {
  const std::string kind = lower(fs::path(file).extension().string());
  return kind == ".mid" || kind == ".midi";
}

MusicCorpus read_midi_folder(const std::string& folder, const std::string& scheme_text,
                             MidiReport* wanted, const EachFile& each) {
  const auto scheme = make_token_scheme(scheme_text);
  const std::vector<fs::path> paths = midi_paths(folder);
  MidiReport own;
  MidiReport& report = wanted ? *wanted : own;
  report.files = static_cast<int64_t>(paths.size());
  std::vector<Piece> pieces;
  for (const fs::path& path : paths) {
    if (each)
      each(static_cast<int64_t>(&path - &paths[0]), report.files, path.string());
    const std::string file = (fs::path(folder) / path).string();
    if (auto ids = tokens_of(file, *scheme, report))
      pieces.push_back({path, std::move(*ids)});
  }
  if (pieces.empty())
    throw DataError(
        folder, -1,
        paths.empty()
            ? "MIDI files, .mid or .midi, in it or below"
            : "a MIDI file with notes that can be read; the first: " +
                  (report.damaged.empty() ? report.silent.front() + " is silent"
                                          : report.damaged.front()));
  assign_splits(pieces);
  MusicCorpus corpus{scheme_text, folder, {}};
  for (Piece& piece : pieces)
    corpus.splits[piece.split].push_back(std::move(piece.ids));
  return corpus;
}

}  // namespace lagwise::data
