// `lagwise data language`: text as bytes.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/data/prepared_set.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/data/sets/byte_corpus.h"

namespace lagwise::cli {
namespace {

constexpr int64_t kPiece = 1 << 20;  // bytes of a sequence; training joins them again

struct LanguageFlags {
  std::string out, path;
  double valid = 0.05, test = 0.05;
};

void write(const data::ByteCorpus& corpus, data::ShardSetWriter& writer,
           PreparedSet& set) {
  int64_t all = 0, written = 0;
  for (const std::string& name : corpus.splits()) all += corpus.split(name).size();
  for (const std::string& name : corpus.splits()) {
    const data::ByteStream& text = corpus.split(name);
    for (int64_t at = 0; at < text.size(); at += kPiece) {
      std::vector<int64_t> piece(
          static_cast<size_t>(std::min(kPiece, text.size() - at)));
      text.read(at, piece);
      const std::vector<int32_t> ids(piece.begin(), piece.end());
      writer.add(name, ids);
      written += static_cast<int64_t>(ids.size());
      set.step(static_cast<double>(written) / static_cast<double>(all));
    }
    if (const int64_t words = corpus.words(name); words > 0)
      writer.note("words_" + name, std::to_string(words));
  }
}

/// Which files of a folder were read, and how many were not.
void print_files(const std::string& path, const data::ByteCorpus& corpus) {
  namespace fs = std::filesystem;
  constexpr size_t kMost = 10;
  std::error_code failed;
  if (!fs::is_directory(path, failed) || corpus.files().empty()) return;
  size_t all = 0;
  for (fs::recursive_directory_iterator at(path, failed), end; !failed && at != end;
       at.increment(failed))
    all += at->is_regular_file(failed);
  const std::vector<std::string> read = corpus.files();
  std::string names;
  for (size_t i = 0; i < std::min(read.size(), kMost); ++i)
    names += " " + fs::path(read[i]).lexically_relative(path).string();
  if (read.size() > kMost) names += " ..";
  fmt::print("read {} of {} files:{}\n", read.size(), all, names);
}

void prepare_language(const LanguageFlags& flags) {
  const data::ByteCorpus corpus(flags.path, flags.valid, flags.test);
  PreparedSet set(flags.out, "language");
  {
    data::ShardSetWriter writer(set.path(),
                                {"text from " + flags.path, "bytes", 256, {}, {}});
    write(corpus, writer, set);
    writer.commit();
  }
  print_files(flags.path, corpus);
  set.finish();
}

void add_data_language(CLI::App& verb) {
  CLI::App* app =
      verb.add_subcommand("language", "Text as bytes: any text files, WikiText");
  const auto flags = std::make_shared<LanguageFlags>();
  add_path(*app, flags->path, "A file, or a folder of them")->required();
  add_out(*app, flags->out);
  const auto part = [&](const char* name, double& value, const char* what) {
    app->add_option(name, value, what)
        ->check(fraction())
        ->capture_default_str()
        ->type_name("FRACTION");
  };
  part("--valid", flags->valid, "The part of a corpus without splits to validate on");
  part("--test", flags->test, "The part, its end, to test on");
  app->callback([flags] { prepare_language(*flags); });
}

const RegisterVerb data_language_registered({.name = "data language",
                                             .place = 4,
                                             .add = add_data_language});

}  // namespace
}  // namespace lagwise::cli
