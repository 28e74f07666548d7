#include "lagwise/study/eval_files.h"

#include <cmath>
#include <filesystem>

#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/study/run_files.h"

namespace lagwise {
namespace {

Json parts_json(const std::vector<PositionLoss>& parts) {
  Json array = Json::array();
  for (const PositionLoss& part : parts) {
    array.push_back({{"begin", part.begin},
                     {"end", part.end},
                     {"loss", part.loss},
                     {"error", part.error},
                     {"restart", part.restart},
                     {"restart_error", part.restart_error},
                     {"difference", part.difference},
                     {"difference_error", part.difference_error}});
    if (std::isnan(part.best)) continue;
    array.back()["best"] = part.best, array.back()["source"] = part.source;
  }
  return array;
}

Json contexts_json(const std::vector<ContextLoss>& contexts) {
  Json array = Json::array();
  for (const ContextLoss& one : contexts)
    array.push_back({{"context", one.context},
                     {"loss", one.loss},
                     {"error", one.error},
                     {"difference", one.difference},
                     {"difference_error", one.difference_error}});
  return array;
}

}  // namespace

std::string eval_name(const std::string& kind, const std::string& split,
                      const EvalPart& part) {
  std::string name = kind + "-" + split;
  if (!part.data_hash.empty()) name += "~data=" + part.data_hash;
  if (part.examples > 0) name += "~examples=" + std::to_string(part.examples);
  return name;
}

Json metric_json(const Evaluation& found, int64_t step, int64_t of_all) {
  return {{"split", found.split},       {"metric", found.metric},
          {"value", found.value},       {"loss", found.loss},
          {"examples", found.examples}, {"of", of_all},
          {"targets", found.targets},   {"step", step},
          {"more", Json(found.more)},   {"guess", found.guess}};
}

Json position_json(const LossByPosition& found, int64_t step) {
  return {{"split", found.split},
          {"trained", found.trained},
          {"length", found.length},
          {"windows", found.windows},
          {"slide", found.slide},
          {"step", step},
          {"buckets", parts_json(found.buckets)},
          {"spans", parts_json(found.spans)},
          {"context_targets", found.context_targets},
          {"contexts", contexts_json(found.contexts)}};
}

Json lengths_json(const MetricByLength& found, int64_t step) {
  Json lengths = Json::array();
  for (const auto& [tokens, at] : found.lengths)
    lengths.push_back({{"tokens", tokens},
                       {"value", at.value},
                       {"loss", at.loss},
                       {"examples", at.examples},
                       {"targets", at.targets}});
  return {{"split", found.split},
          {"metric", found.metric},
          {"trained", found.trained},
          {"step", step},
          {"lengths", lengths}};
}

Json stream_json(const LossAlongStream& found, int64_t step) {
  Json points = Json::array();
  for (const StreamPoint& point : found.points)
    points.push_back({{"begin", point.begin},
                      {"end", point.end},
                      {"loss", point.loss},
                      {"restart", point.restart},
                      {"tokens_per_second", point.tokens_per_second},
                      {"state_bytes", point.state_bytes},
                      {"resident_bytes", point.resident_bytes}});
  return {{"split", found.split},
          {"trained", found.trained},
          {"to", found.points.empty() ? 0 : found.points.back().end},
          {"chunk", found.chunk},
          {"step", step},
          {"stopped", found.stopped},
          {"points", points}};
}

Json pseudo_json(const PseudoPerplexity& found, int64_t step) {
  return {{"split", found.split},
          {"perplexity", found.perplexity},
          {"loss", found.loss},
          {"error", found.error},
          {"windows", found.windows},
          {"length", found.length},
          {"tokens", found.tokens},
          {"right", found.right},
          {"step", step}};
}

std::string write_eval(const std::string& run, const std::string& name,
                       const Json& json) {
  const std::filesystem::path folder = std::filesystem::path(run) / "eval";
  std::filesystem::create_directories(folder);
  const std::string file = (folder / (name + ".json")).string();
  data::replace_file(file, json.dump(2) + "\n");
  return file;
}

}  // namespace lagwise
