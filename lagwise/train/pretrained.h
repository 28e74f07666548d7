#pragma once

#include <string>
#include <vector>

#include "lagwise/train/adamw.h"
#include "lagwise/train/trainer_state.h"

namespace lagwise {

/// A checkpoint of another run, to begin with.
struct Pretrained {
  std::string folder;  ///< of the checkpoint
  TrainerState state;
};

/// `from`: the folder of a run, whose best checkpoint on the split valid it is (its
/// newest, where nothing was judged), or the folder of a checkpoint. `key` names the
/// setting in messages. DataError where it is neither, or damaged.
Pretrained open_pretrained(const std::string& from, const std::string& key);

/// Begins with the weights of another run: copies into `parameters`, those of the model
/// that `to` describes, the tensors of the same names.
///
///     the body      layers.*, norm.*, pos.* and so on: every tensor of either model must
///                   be there in the other, in the same shape; else it is refused
///     embed.weight  tokens must mean the same in both: one tokenizer, the same words, or
///                   bytes. A masked model has one row more, for its mask: the rows of
///                   the tokens are taken
///     the head      head.*, cls, compare.*: taken from a model of the same kind with the
///                   same classes, else begun anew
///     pos.*         and what belongs to an attention: begun anew where model.encoding or
///                   model.attention was changed on purpose
///
/// The optimiser begins anew. `run`: the folder of the run to train, which `from` must
/// not be. std::invalid_argument names every key, or tensor, that does not fit.
Origin take_weights(const std::string& from, const std::string& run,
                    const TrainerState& to, const std::vector<NamedTensor>& parameters);

/// What was taken and what was not, for people.
std::string origin_line(const Origin& origin);

}  // namespace lagwise
