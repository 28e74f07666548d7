#pragma once

#include <string>

#include "lagwise/train/answers.h"
#include "lagwise/train/evaluation.h"
#include "lagwise/train/pseudo_perplexity.h"

namespace lagwise::cli {

// What `lagwise eval` found, for people.

std::string metric_text(const Evaluation& found);

/// The first few that are not what was wanted; nothing where all are.
std::string answers_text(const Answers& answers);

std::string pseudo_text(const PseudoPerplexity& found);

/// A row for each length.
std::string lengths_text(const MetricByLength& found);

/// A table by span, with what can be known where the task says so, a sentence for each
/// span beyond the training length, the loss against the length of context, a chart.
std::string position_text(const LossByPosition& found);

/// A table by doublings, and a chart.
std::string stream_text(const LossAlongStream& found);

/// "longer context is used (-0.031 +- 0.004 nats against a restarted window)", or
/// harms, or neither, by the 95 % confidence interval of the difference.
std::string verdict(const PositionLoss& part);

}  // namespace lagwise::cli
