#include "lagwise/study/compare/ledger.h"

#include <filesystem>
#include <fstream>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/study/run_files.h"

namespace lagwise {

CompareLedger::CompareLedger(const std::string& folder)
    : file_((std::filesystem::path(folder) / "compare.json").string()) {
  std::ifstream stream(file_);
  if (!stream) return;
  try {
    const Json json = Json::parse(stream);
    spent_ = json.at("spent_seconds");
    for (const auto& [run, failure] : json.at("failures").items())
      failures_[run] = {failure.at("code"), failure.at("message")};
  } catch (const Json::exception&) {
    throw DataError(file_, -1, "spent_seconds and failures, as lagwise compare writes");
  }
}

void CompareLedger::spend(double seconds) {
  spent_ += seconds;
  write();
}

const CompareLedger::Failure* CompareLedger::failure(const std::string& run) const {
  const auto found = failures_.find(run);
  return found == failures_.end() ? nullptr : &found->second;
}

void CompareLedger::failed(const std::string& run, const Failure& failure) {
  failures_[run] = failure;
  write();
}

void CompareLedger::forget_failure(const std::string& run) {
  if (failures_.erase(run) > 0) write();
}

void CompareLedger::write() const {
  Json failures = Json::object();
  for (const auto& [run, failure] : failures_)
    failures[run] = {{"code", failure.code}, {"message", failure.message}};
  data::replace_file(
      file_, Json({{"spent_seconds", spent_}, {"failures", failures}}).dump(2) + "\n");
}

}  // namespace lagwise
