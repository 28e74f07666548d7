#include "lagwise/tasks/music_text.h"

#include <sstream>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/smf.h"
#include "lagwise/data/music/music_corpus.h"

namespace lagwise {
namespace {

std::vector<int64_t> file_tokens(const data::TokenScheme& scheme,
                                 const std::string& file) {
  data::Music music = data::read_smf(file);
  data::tidy(music);
  const data::Tokenised tokens = scheme.encode(music);
  if (tokens.loss.kept == 0)
    throw DataError(file, -1,
                    "notes to go on from; the tokens can say none of " +
                        std::to_string(tokens.loss.notes));
  return {tokens.ids.begin(), tokens.ids.end()};
}

std::vector<int64_t> word_tokens(const data::Vocabulary& vocabulary,
                                 const std::string& text) {
  std::vector<int64_t> tokens;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    tokens.push_back(vocabulary.id(word));
    if (tokens.back() < 0)
      throw std::invalid_argument("music: '" + word +
                                  "' is no word of the vocabulary, no .mid file and no "
                                  "piece of the data such as valid:0");
  }
  return tokens;
}

}  // namespace

std::vector<int64_t> MusicText::encode(const std::string& text) const {
  std::vector<int64_t> tokens = data::is_midi_name(text)
                                    ? file_tokens(*scheme_, text)
                                    : word_tokens(scheme_->vocabulary(), text);
  if (!tokens.empty() && tokens.back() == scheme_->end()) tokens.pop_back();
  return tokens;
}

std::string MusicText::decode(const std::vector<int64_t>& tokens) const {
  std::string text;
  for (const int64_t token : tokens)
    text += scheme_->vocabulary().word(static_cast<int32_t>(token)) + " ";
  if (!text.empty()) text.pop_back();
  return text;
}

}  // namespace lagwise
