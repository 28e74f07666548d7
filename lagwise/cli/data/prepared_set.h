#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/terminal/progress.h"
#include "lagwise/cli/terminal/stop_signal.h"
#include "lagwise/data/sets/examples.h"
#include "lagwise/data/sets/new_folder.h"
#include "lagwise/data/text/tokenizer.h"

namespace lagwise::cli {

/// A set that is being made: into a folder that appears when it is whole, with a
/// progress bar. Ctrl-C ends it, and leaves nothing.
class PreparedSet {
 public:
  PreparedSet(const std::string& out, const std::string& task);

  const std::string& path() const { return folder_.path(); }  ///< to write into

  /// After each sequence; `done`: the fraction of all, negative where unknown.
  void step(double done);

  /// Makes it appear, and prints what is in it.
  void finish();

 private:
  StopSignal listening_;
  data::NewFolder folder_;
  std::string task_;
  Progress progress_;
  int64_t sequences_ = 0;
};

/// Prints a set: splits, sizes, hash, and how to train on it.
void print_set(const std::string& folder, const std::string& task);

struct ExamplePlan {
  std::string out, task;
  data::ExampleLayout layout = {};
  int64_t classes = 0;
  /// What their bytes become tokens of, kept with the set; nullptr: they stay as they are.
  const data::Tokenizer* tokenizer = nullptr;
  data::ShardManifest manifest;  // last: CONTRIBUTING.md has why (g++ 12)
};

/// Makes a set of examples. `source` hands each to the visitor, and may note what it
/// found with the writer.
void prepare_examples(
    const ExamplePlan& plan,
    const std::function<void(data::ExampleWriter&, const data::VisitExample&)>& source);

/// The options every subcommand has: --out, and the path it reads.
CLI::Option* add_out(CLI::App& verb, std::string& out);
CLI::Option* add_path(CLI::App& verb, std::string& path, const std::string& what);

/// A part of the data that becomes a split, as a fraction of it.
void add_part(CLI::App& verb, const char* name, double& value, const char* what);

/// A number of what is made where no `path` is read.
template <class Number>
void add_making(CLI::App& verb, CLI::Option& path, const char* name, Number& value,
                int least, int most, const char* what) {
  verb.add_option(name, value, what)
      ->check(whole_number(least, most))
      ->excludes(&path)
      ->capture_default_str()
      ->type_name("N");
}

}  // namespace lagwise::cli
