#include "lagwise/study/card.h"

#include <fmt/format.h>

#include <cctype>
#include <filesystem>

#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/music/music_corpus.h"
#include "lagwise/models/model.h"
#include "lagwise/study/run_files.h"

namespace lagwise {
namespace {

/// What is not as it is unless given: "-t0.5-k40".
std::string name_of(const Sampling& sampling) {
  const Sampling plain;
  std::string name;
  const auto add = [&](char letter, double value, double usual) {
    if (value != usual) name += fmt::format("-{}{:g}", letter, value);
  };
  add('t', sampling.temperature, plain.temperature);
  add('k', static_cast<double>(sampling.top_k), static_cast<double>(plain.top_k));
  add('p', sampling.top_p, plain.top_p);
  add('m', sampling.min_p, plain.min_p);
  add('r', sampling.repetition_penalty, plain.repetition_penalty);
  if (sampling.repetition_penalty != plain.repetition_penalty)
    add('w', static_cast<double>(sampling.repetition_window),
        static_cast<double>(plain.repetition_window));
  return name;
}

}  // namespace

Json card_json(const Run& run, const Sampling& sampling, const Sample& sample) {
  const ModelConfig& model = run.model_config();
  Json card = {{"run", run.folder},
               {"step", run.step},
               {"model", model.model},
               {"encoding", model.encoding},
               {"attention", model.attention},
               {"trained", model.length},
               {"seed", sampling.seed},
               {"sample", sample.index},
               {"temperature", sampling.temperature},
               {"top_k", sampling.top_k},
               {"top_p", sampling.top_p},
               {"min_p", sampling.min_p},
               {"repetition_penalty", sampling.repetition_penalty},
               {"repetition_window", sampling.repetition_window},
               {"prompt", sample.prompt},
               {"text", sample.text},
               {"prompt_tokens", sample.prompt_tokens},
               {"tokens", sample.tokens}};
  if (!sample.log_probabilities.empty()) card["logprobs"] = sample.log_probabilities;
  if (!sample.music.is_null()) card["music"] = sample.music;
  return card;
}

std::string card_name(const Sample& sample, const Sampling& sampling) {
  constexpr size_t kMost = 32;
  // Of a MIDI file, the name without its folders.
  const std::string text = data::is_midi_name(sample.prompt)
                               ? std::filesystem::path(sample.prompt).stem().string()
                               : sample.prompt;
  std::string name;
  bool cut = false;
  for (const char c : text) {
    if (name.size() >= kMost) {
      cut = true;
      break;
    }
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain)
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    else if (!name.empty() && name.back() != '-')
      name += '-';
  }
  while (name.ends_with('-')) name.pop_back();
  if (name.empty()) name = "no-prompt";
  if (cut) name += "-" + data::hash_text(data::fnv1a(data::bytes_of(text))).substr(12);
  return fmt::format("{}-seed{}{}-{}", name, sampling.seed, name_of(sampling),
                     sample.index + 1);
}

std::string write_card(const std::string& folder, const Run& run,
                       const Sampling& sampling, const Sample& sample) {
  std::filesystem::create_directories(folder);
  const std::filesystem::path path =
      std::filesystem::path(folder) / card_name(sample, sampling);
  data::replace_file(path.string() + ".txt", sample.prompt + sample.text + "\n");
  data::replace_file(path.string() + ".json",
                     card_json(run, sampling, sample).dump(2) + "\n");
  return path.string() + ".txt";
}

}  // namespace lagwise
