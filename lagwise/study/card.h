#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lagwise/core/sampler.h"
#include "lagwise/study/run_files.h"
#include "lagwise/train/run.h"

namespace lagwise {

/// One thing a run wrote.
struct Sample {
  int64_t index = 0;  ///< of the samples of one call
  std::string prompt, text;
  std::vector<int64_t> tokens;  ///< without the prompt
  std::vector<int64_t> prompt_tokens = {};
  Json music = nullptr;                        ///< generate_music.h; null: no music
  std::vector<double> log_probabilities = {};  ///< of `tokens`, where asked for
};

/// The card of a sample: run, model, checkpoint, settings, text and tokens.
Json card_json(const Run& run, const Sampling& sampling, const Sample& sample);

/// A name for its files that is the same for the same prompt, settings and index,
/// whatever the run: "to-be-or-not-to-be-seed1-2", or "..-seed1-t0.5-k40-p0.9-2" where
/// temperature, top k, top p, min p (m) and the penalty on repetition (r, and w its
/// window) are not what they are unless given. A prompt that is cut short has its hash
/// behind it.
std::string card_name(const Sample& sample, const Sampling& sampling);

/// Writes FOLDER/NAME.txt (prompt and text) and FOLDER/NAME.json (the card); returns
/// the path of the text.
std::string write_card(const std::string& folder, const Run& run,
                       const Sampling& sampling, const Sample& sample);

}  // namespace lagwise
