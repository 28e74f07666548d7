#pragma once

#include <functional>
#include <vector>

#include "lagwise/core/sampler.h"
#include "lagwise/models/batch.h"
#include "lagwise/ops/encoded.h"
#include "lagwise/tasks/token_text.h"
#include "lagwise/train/decoder.h"

namespace lagwise {

class Model;

/// What to write.
struct Writing {
  /// One for each sample; they may differ in length. Of an empty one the first token is
  /// drawn evenly from the legal ones.
  std::vector<std::vector<int64_t>> prompts;
  int64_t length = 0;  ///< new tokens of each sample
  Sampling sampling;
  const Batch* source =
      nullptr;               ///< what an encoder_decoder listens to, a row a sample
  int64_t first_sample = 0;  ///< number of the first of them
  int64_t never = -1;        ///< a token that is not drawn: the end of a piece
  std::vector<std::vector<int64_t>> stops = {};  ///< a sample ends after one of these
  bool log_probabilities = false;                ///< of what was drawn, too
  bool take_last = false;  ///< the decoder also takes the last token, for its state
};

struct Written {
  std::vector<std::vector<int64_t>> tokens;  ///< new ones of each sample
  /// Of each of them where asked for, as the model had it (core/sampler.h).
  std::vector<std::vector<double>> log_probabilities;
  double prompt_seconds = 0, seconds = 0;  ///< to read the prompts, to write
  int64_t steps = 0;
  int64_t state_bytes = 0;  ///< of the decoding state at the end
};

/// Called after each step with the new token of every sample, -1 for one that has
/// ended. false: stop here.
using EachStep = std::function<bool(const std::vector<int64_t>& tokens)>;

/// Writes on. The grammar of the text, if there is one, decides what is legal, and ends
/// a sample where nothing is. Prompts are taken in chunks, then token by token.
Written write_on(Decoder& decoder, const TokenText* text, const Writing& writing,
                 const EachStep& each = {});

/// The same by torch, from the beginning.
Written write_on(Model& model, const TokenText* text, const Draw& draw,
                 const Writing& writing, const EachStep& each = {});

}  // namespace lagwise
