#include "lagwise/data/music/music_corpus.h"

#include <algorithm>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/music/grooves.h"
#include "lagwise/data/sets/shards.h"

namespace lagwise::data {
namespace {

constexpr const char* kVocabularyHash = "vocabulary_fnv1a";

}  // namespace

int64_t MusicCorpus::tokens(const std::string& split) const {
  int64_t sum = 0;
  const auto found = splits.find(split);
  if (found == splits.end()) return 0;
  for (const auto& piece : found->second) sum += static_cast<int64_t>(piece.size());
  return sum;
}

uint64_t MusicCorpus::hash() const {
  uint64_t hash = fnv1a(bytes_of(scheme));
  for (const auto& [name, pieces] : splits) {
    hash = fnv1a(bytes_of("\n" + name + "\n"), hash);
    for (const auto& piece : pieces) {
      const auto* const bytes = reinterpret_cast<const uint8_t*>(piece.data());
      hash = fnv1a({bytes, piece.size() * sizeof(int32_t)}, hash);
      hash = fnv1a(bytes_of("."), hash);  // where a piece ends
    }
  }
  return hash;
}

std::string groove_split(int64_t song, int64_t songs) {
  const int64_t held = std::max<int64_t>(1, songs / 10);
  if (song >= songs - held) return "test";
  return song >= songs - 2 * held ? "valid" : "train";
}

MusicCorpus make_groove_corpus(int styles, int64_t songs, uint64_t seed,
                               const std::string& scheme_text, const EachFile& each) {
  if (songs < 3)
    throw std::invalid_argument("grooves: expected at least 3 songs, got " +
                                std::to_string(songs));
  const auto scheme = make_token_scheme(scheme_text);
  const Grooves grooves(styles, seed);
  MusicCorpus corpus{scheme_text, "lagwise data grooves", {}};
  corpus.info = {{"styles", std::to_string(styles)},
                 {"songs", std::to_string(songs)},
                 {"seed", std::to_string(seed)}};
  for (int64_t i = 0; i < songs; ++i) {
    if (each) each(i, songs, grooves.style(grooves.style_of(i)).name);
    corpus.splits[groove_split(i, songs)].push_back(
        scheme->encode(grooves.song(i)).ids);
  }
  return corpus;
}

int64_t add_transposed(MusicCorpus& corpus, int semitones) {
  const auto scheme = make_token_scheme(corpus.scheme);
  Pieces& pieces = corpus.splits["train"];
  const size_t originals = pieces.size();
  for (int by = -semitones; by <= semitones; ++by)
    for (size_t i = 0; by != 0 && i < originals; ++i) {
      std::vector<int32_t> moved = pieces[i];
      if (scheme->transpose(moved, by)) pieces.push_back(std::move(moved));
    }
  corpus.info["transposed"] = std::to_string(semitones);
  return static_cast<int64_t>(pieces.size() - originals);
}

void write_music_set(const std::string& folder, const MusicCorpus& corpus) {
  const auto scheme = make_token_scheme(corpus.scheme);
  const Vocabulary& vocabulary = scheme->vocabulary();
  ShardManifest manifest{corpus.source, corpus.scheme, vocabulary.size(),
                         vocabulary.words(), corpus.info};
  manifest.info[kVocabularyHash] = hash_text(vocabulary.hash());
  ShardSetWriter writer(folder, std::move(manifest));
  for (const auto& [split, pieces] : corpus.splits)
    for (const auto& piece : pieces) writer.add(split, piece);
  writer.commit();
}

MusicCorpus open_music_set(const std::string& folder) {
  const ShardSet set(folder);
  const ShardManifest& manifest = set.manifest();
  const std::string name = folder + "/manifest.json";
  std::unique_ptr<TokenScheme> scheme;
  try {
    scheme = make_token_scheme(manifest.scheme);
  } catch (const std::invalid_argument& error) {
    throw DataError(name, -1, std::string("a set of music: ") + error.what());
  }
  if (scheme->vocabulary().hash() != Vocabulary(manifest.words).hash())
    throw DataError(name, -1,
                    "the words of the scheme " + manifest.scheme + ", vocabulary " +
                        hash_text(scheme->vocabulary().hash()) + "; make the set anew");
  MusicCorpus corpus{manifest.scheme, manifest.source, {}, manifest.info};
  for (const std::string& split : set.splits()) {
    const Shard& shard = set.split(split);
    Pieces& pieces = corpus.splits[split];
    for (int64_t i = 0; i < shard.sequences(); ++i) {
      std::vector<int64_t> ids(static_cast<size_t>(shard.length(i)));
      shard.read(i, 0, ids);
      pieces.emplace_back(ids.begin(), ids.end());
    }
  }
  return corpus;
}

}  // namespace lagwise::data
