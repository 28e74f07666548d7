#include "lagwise/cli/data/prepared_set.h"

#include <fmt/format.h>

#include <algorithm>

#include "lagwise/cli/checks.h"
#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/data/sets/shards.h"

namespace lagwise::cli {

namespace {

/// "16 words, 10 classes". Where there are classes, the manifest's own vocabulary also
/// counts labels.
std::string words_and_classes(const data::ShardManifest& manifest) {
  const auto info = [&](const char* key) {
    const auto found = manifest.info.find(key);
    return found == manifest.info.end() ? std::string() : found->second;
  };
  const std::string classes = info("classes");
  if (classes.empty() || classes == "0")
    return fmt::format("{} words", manifest.vocabulary);
  return fmt::format("{} words, {} classes", info("vocabulary"), classes);
}

}  // namespace

PreparedSet::PreparedSet(const std::string& out, const std::string& task)
    : folder_(out), task_(task), progress_("lagwise data " + task) {}

void PreparedSet::step(double done) {
  StopSignal::check("stopped; nothing was written");
  progress_.update(done, fmt::format("{} sequences", ++sequences_));
}

void PreparedSet::finish() {
  progress_.clear();
  folder_.commit();
  print_set(folder_.name(), task_);
}

void print_set(const std::string& folder, const std::string& task) {
  const data::ShardSet set(folder);
  const data::ShardManifest& manifest = set.manifest();
  fmt::print("{}: scheme {}, {}\n\n", folder, manifest.scheme,
             words_and_classes(manifest));
  fmt::print("{:<8} {:>12} {:>14} {:>14}\n", "split", "sequences", "tokens", "bytes");
  for (const std::string& name : set.splits()) {
    const data::Shard& shard = set.split(name);
    fmt::print("{:<8} {:>12} {:>14} {:>14}\n", name, shard.sequences(), shard.tokens(),
               shard.bytes());
  }
  const std::vector<std::string> splits = set.splits();
  if (std::ranges::find(splits, "valid") == splits.end())
    fmt::print(
        "\nno split valid: there is too little data for one, or none was asked "
        "for; training will evaluate nothing\n");
  fmt::print("\nhash {}\nTrain on it with data.task = \"{}\" and data.path = \"{}\".\n",
             data::hash_text(set.hash()), task, folder);
}

void prepare_examples(const ExamplePlan& plan,
                      const std::function<void(data::ExampleWriter&,
                                               const data::VisitExample&)>& source) {
  PreparedSet set(plan.out, plan.task);
  {
    data::ShardManifest manifest = plan.manifest;
    if (plan.tokenizer) {
      manifest.vocabulary = plan.tokenizer->vocabulary();
      manifest.info["tokenizer"] = data::hash_text(plan.tokenizer->hash());
    }
    data::ExampleWriter writer(set.path(), manifest, plan.layout, plan.classes);
    source(writer,
           [&](const std::string& split, const data::Example& example, double done) {
             writer.add(split, plan.tokenizer ? data::encoded(*plan.tokenizer, example)
                                              : example);
             set.step(done);
           });
    if (plan.tokenizer)
      data::replace_file(set.path() + "/" + data::kTokenizerFile,
                         plan.tokenizer->json());
    writer.commit();
  }
  set.finish();
}

CLI::Option* add_out(CLI::App& verb, std::string& out) {
  return verb.add_option("--out", out, "The folder to make")
      ->required()
      ->check(file_name())
      ->type_name("SET");
}

CLI::Option* add_path(CLI::App& verb, std::string& path, const std::string& what) {
  return verb.add_option("PATH", path, what)->check(file_name())->type_name("");
}

void add_part(CLI::App& verb, const char* name, double& value, const char* what) {
  verb.add_option(name, value, what)
      ->check(fraction())
      ->capture_default_str()
      ->type_name("FRACTION");
}

}  // namespace lagwise::cli
