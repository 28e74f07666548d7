#include "lagwise/data/music/chorale_tokens.h"

#include <charconv>
#include <sstream>
#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/jsb.h"
#include "lagwise/data/formats/path_kind.h"

namespace lagwise::data {
namespace {

constexpr const char* kNames[] = {"C",  "C#", "D",  "D#", "E",  "F",
                                  "F#", "G",  "G#", "A",  "A#", "B"};
constexpr int64_t kMostSteps = 4096;  // of a note in a text

std::string pitch_name(int pitch) {
  return kNames[pitch % 12] + std::to_string(pitch / 12 - 1);
}

int32_t token_of(int pitch) { return pitch < 0 ? kChoraleRest : kChoralePitch + pitch; }

bool is_pitch(int64_t token) { return token >= kChoralePitch && token < kChoraleWords; }

Example example_of(const Chorale& chorale) {
  Example example;
  for (const auto& voices : chorale) {
    example.first.push_back(token_of(voices[0]));
    for (size_t v = 1; v < 4; ++v) example.second.push_back(token_of(voices[v]));
  }
  return example;
}

std::string chord_text(std::span<const int64_t> chord) {
  std::string text;
  for (const int64_t token : chord)
    text +=
        (is_pitch(token) ? pitch_name(static_cast<int>(token - kChoralePitch)) : "-") +
        std::string(" ");
  return text;
}

[[noreturn]] void refuse_note(const std::string& word) {
  throw std::invalid_argument(
      "harmonise: expected notes such as C5, F#4:8 or -:4, got '" + word + "'");
}

/// "F#4" -> its token
int32_t note_token(const std::string& word, std::string_view name) {
  if (name == "-") return kChoraleRest;
  const std::string names = "C D EF G A B";
  const size_t letter =
      name.empty() || name[0] == ' ' ? names.npos : names.find(name[0]);
  if (letter == names.npos) refuse_note(word);
  int pitch = static_cast<int>(letter);
  name.remove_prefix(1);
  for (; !name.empty() && (name[0] == '#' || name[0] == 'b'); name.remove_prefix(1))
    pitch += name[0] == '#' ? 1 : -1;
  int octave = 0;
  const auto [end, error] =
      std::from_chars(name.data(), name.data() + name.size(), octave);
  if (error != std::errc() || end != name.data() + name.size() || octave < -1 ||
      octave > 9)
    refuse_note(word);
  pitch += 12 * (octave + 1);
  if (pitch < 0 || pitch > 127) refuse_note(word);
  return kChoralePitch + pitch;
}

}  // namespace

std::vector<std::string> chorale_words() {
  std::vector<std::string> words = {"begin", "rest", "new", "held"};
  for (int i = 0; i < kChoralePlaces; ++i)
    words.push_back("place_" + std::to_string(i));
  for (int pitch = 0; pitch < 128; ++pitch) words.push_back(pitch_name(pitch));
  return words;
}

void read_chorale_examples(const std::string& path, const VisitExample& visit) {
  const auto splits =
      read_jsb(is_folder(path) ? path + "/Jsb16thSeparated.json" : path);
  size_t all = 0, read = 0;
  for (const auto& [split, chorales] : splits) all += chorales.size();
  for (const auto& [split, chorales] : splits)
    for (const Chorale& chorale : chorales)
      visit(split, example_of(chorale),
            static_cast<double>(++read) / static_cast<double>(all));
}

std::vector<int64_t> heard_soprano(std::span<const int64_t> soprano, int64_t begin,
                                   int64_t steps, int semitones) {
  std::vector<int64_t> heard;
  for (int64_t t = begin; t < begin + steps; ++t) {
    const auto at = static_cast<size_t>(t);
    const bool held = t > 0 && soprano[at] == soprano[at - 1];
    heard.push_back(soprano[at] + (is_pitch(soprano[at]) ? semitones : 0));
    heard.push_back(held ? kChoraleHeld : kChoraleNew);
    heard.push_back(kChoralePlace + t % kChoralePlaces);
  }
  return heard;
}

std::vector<int64_t> soprano_of_text(std::string_view text) {
  std::vector<int64_t> soprano;
  std::istringstream in{std::string(text)};
  for (std::string word; in >> word;) {
    const size_t colon = word.find(':');
    int64_t steps = 4;
    if (colon != std::string::npos) {
      const char* first = word.data() + colon + 1;
      const char* last = word.data() + word.size();
      const auto [end, error] = std::from_chars(first, last, steps);
      if (error != std::errc() || end != last || steps < 1 || steps > kMostSteps)
        refuse_note(word);
    }
    const int32_t note = note_token(word, std::string_view(word).substr(0, colon));
    soprano.insert(soprano.end(), static_cast<size_t>(steps), note);
  }
  if (soprano.empty()) refuse_note("");
  return soprano;
}

std::string chords_text(std::span<const int64_t> tokens) {
  std::string text;
  for (size_t at = 0; at + 3 <= tokens.size();) {
    const std::string chord = chord_text(tokens.subspan(at, 3));
    int64_t steps = 0;
    for (; at + 3 <= tokens.size() && chord_text(tokens.subspan(at, 3)) == chord;
         at += 3)
      ++steps;
    text += chord + ":" + std::to_string(steps) + "\n";
  }
  return text;
}

}  // namespace lagwise::data
