#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lagwise/data/formats/smf.h"
#include "lagwise/data/music/token_scheme.h"

namespace lagwise::data {

using Pieces = std::vector<std::vector<int32_t>>;

/// Pieces of music as tokens, by split: train, valid, test.
struct MusicCorpus {
  std::string scheme;  ///< "groove:velocities=4"
  std::string source;  ///< where it comes from, for people
  std::map<std::string, Pieces> splits;
  std::map<std::string, std::string> info = {};  ///< what else is worth keeping

  int64_t tokens(const std::string& split) const;
  uint64_t hash() const;  ///< of scheme, splits and tokens
};

/// What became of a folder of MIDI files.
struct MidiReport {
  int64_t files = 0, read = 0;
  std::vector<std::string> damaged;  ///< file, offset and what was expected there
  std::vector<std::string> silent;   ///< of whose notes the scheme can say none
  SmfRepairs repairs;
  TokenLoss loss;

  std::vector<std::string> left_out() const;  ///< data/sets/left_out.h
};

/// Called before each file, with how many there are.
using EachFile = std::function<void(int64_t done, int64_t files, const std::string&)>;

/// Whether a file's name ends in .mid or .midi, in letters of any size.
bool is_midi_name(const std::string& file);

/// Every .mid and .midi file below the folder, in the order of their names. Damaged and
/// silent ones are left out, and reported; DataError where nothing is left.
///
/// Splits  A file below a folder train, valid (val, validation, dev) or test belongs to
///         it. Where no folder has such a name, a hash of the file's name below the
///         folder puts one in twenty into valid and one into test, and at least one
///         where there are two files, or three: a file stays where it is when others
///         come or go.
MusicCorpus read_midi_folder(const std::string& folder, const std::string& scheme,
                             MidiReport* report = nullptr, const EachFile& each = {});

/// Songs 0 .. songs - 1 of Grooves(styles, seed): the last tenth is test, the tenth
/// before valid. std::invalid_argument for fewer than three songs.
MusicCorpus make_groove_corpus(int styles, int64_t songs, uint64_t seed,
                               const std::string& scheme = "groove",
                               const EachFile& each = {});

/// The split of song i of so many.
std::string groove_split(int64_t song, int64_t songs);

/// Adds every training piece moved by -semitones .. semitones, as far as its pitches
/// stay in the vocabulary. Returns how many it added.
int64_t add_transposed(MusicCorpus& corpus, int semitones);

/// Writes a prepared set (data/sets/shards.h); the manifest keeps the hash of the
/// vocabulary.
void write_music_set(const std::string& folder, const MusicCorpus& corpus);

/// A prepared set, read whole. DataError where its words are not those of its scheme:
/// it was made by another version, or is no music.
MusicCorpus open_music_set(const std::string& folder);

}  // namespace lagwise::data
