#include "lagwise/train/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "lagwise/data/formats/atomic_file.h"

namespace lagwise {
namespace {

using Json = nlohmann::json;
using Ordered = nlohmann::ordered_json;

/// The step of a line; -1 where it is no line.
int64_t step_of(const Json& line) {
  if (!line.is_object() || !line.contains("step")) return -1;
  return line["step"].is_number_integer() ? line["step"].get<int64_t>() : -1;
}

Json parse(const std::string& line) { return Json::parse(line, nullptr, false); }

std::string kept_lines(const std::string& file, int64_t last, bool judged) {
  std::ifstream in(file);
  std::string kept;
  for (std::string line; std::getline(in, line);) {
    const Json json = parse(line);
    const int64_t step = step_of(json);
    if (step < 0 || step > last || json.contains("done")) continue;
    if (step == last && !judged && json.contains("split")) continue;
    kept += line + "\n";
  }
  return kept;
}

}  // namespace

Metrics::Metrics(const std::string& file, int64_t step, bool judged) : file_(file) {
  data::replace_file(file, kept_lines(file, step, judged));
  descriptor_ = open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  if (descriptor_ < 0)
    throw std::runtime_error("cannot write " + file + ": " + std::strerror(errno));
}

Metrics::~Metrics() {
  if (descriptor_ >= 0) close(descriptor_);
}

void Metrics::write(const std::string& line) {
  const std::string text = line + "\n";
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = ::write(descriptor_, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0)
      throw std::runtime_error("cannot write " + file_ + ": " + std::strerror(errno));
    done += static_cast<size_t>(wrote);
  }
}

void Metrics::add(const TrainingLine& line) {
  Ordered json = {{"step", line.step},
                  {"loss", line.loss},
                  {"lr", line.lr},
                  {"grad_norm", line.grad_norm},
                  {"tokens", line.tokens}};
  if (line.tokens_read > 0) json["tokens_read"] = line.tokens_read;
  json["tokens_per_second"] = line.tokens_per_second;
  json["seconds"] = line.seconds;
  write(json.dump());
}

void Metrics::add(int64_t step, const Evaluation& found) {
  Ordered line = {{"step", step},
                  {"split", found.split},
                  {"loss", found.loss},
                  {"metric", found.metric},
                  {"value", found.value}};
  for (const auto& [name, value] : found.more) line[name] = value;
  write(line.dump());
}

void Metrics::add_end(int64_t step, double seconds, int64_t peak_bytes) {
  write(Ordered{
      {"step", step}, {"done", true}, {"seconds", seconds}, {"peak_bytes", peak_bytes}}
            .dump());
}

void Metrics::add_divergence(int64_t step, const std::string& what) {
  write(Ordered{{"step", step}, {"diverged", what}}.dump());
}

void Metrics::sync() {
  if (fsync(descriptor_) != 0)
    throw std::runtime_error("cannot write " + file_ + ": " + std::strerror(errno));
}

bool ended_at(const std::string& file, int64_t step) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    const Json json = parse(line);
    if (step_of(json) == step && json.contains("done")) return true;
  }
  return false;
}

}  // namespace lagwise
