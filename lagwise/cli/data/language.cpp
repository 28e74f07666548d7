// `lagwise data language`: text as bytes, pieces of words or words.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <vector>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/data/prepared_set.h"
#include "lagwise/cli/data/tokenizer_flag.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/errors.h"
#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/data/sets/language_corpus.h"
#include "lagwise/data/sets/text_corpus.h"
#include "lagwise/data/text/token_kind.h"

namespace lagwise::cli {
namespace {

constexpr size_t kPiece = 1 << 20;  // bytes that are encoded at a time

struct LanguageFlags {
  std::string out, path, tokens = "byte", tokenizer;
  double valid = 0.05, test = 0.05;
  bool documents = false;
};

/// What of a split is written: its documents, or the parts of its files.
std::vector<data::Bytes> texts_of(const data::LanguageCorpus& corpus,
                                  const std::string& split, bool documents) {
  return documents ? corpus.documents(split) : corpus.split(split).parts();
}

/// Writes the text of a corpus and counts what the set keeps of it. A sequence is a
/// document, or a piece of a file: those training joins again.
class LanguageWriter {
 public:
  LanguageWriter(const data::LanguageCorpus& corpus, const data::Tokenizer* tokenizer,
                 bool documents, data::ShardSetWriter& writer, PreparedSet& set)
      : corpus_(corpus),
        tokenizer_(tokenizer),
        documents_(documents),
        writer_(writer),
        set_(set) {
    for (const std::string& name : corpus.splits()) all_ += corpus.bytes(name);
  }

  void write() {
    for (const std::string& name : corpus_.splits()) {
      count_ = {};
      for (const data::Bytes text : texts_of(corpus_, name, documents_)) {
        write_text(name, data::text_of(text));
        count_.bytes += std::ssize(text);
        count_.words += data::wikitext_words(text);
      }
      note("words_", name, count_.words);
      if (!tokenizer_) continue;
      note("bytes_", name, count_.bytes);
      if (tokenizer_->unknown() >= 0) note("unknown_", name, count_.unknown);
    }
  }

 private:
  void write_text(const std::string& split, std::string_view rest) {
    std::vector<int32_t> sequence;
    while (!rest.empty()) {
      const size_t before = rest.size();
      std::vector<int32_t> ids;
      if (tokenizer_) {
        tokenizer_->encode_front(rest, kPiece, ids);
        count_.unknown += std::ranges::count(ids, tokenizer_->unknown());
      } else {
        const data::Bytes piece = data::bytes_of(rest.substr(0, kPiece));
        ids.assign(piece.begin(), piece.end());
        rest.remove_prefix(piece.size());
      }
      sequence.insert(sequence.end(), ids.begin(), ids.end());
      if (!sequence.empty() && (!documents_ || rest.empty())) {
        writer_.add(split, sequence);
        sequence.clear();
      }
      written_ += static_cast<int64_t>(before - rest.size());
      set_.step(static_cast<double>(written_) / static_cast<double>(all_));
    }
  }

  void note(const char* what, const std::string& split, int64_t number) {
    writer_.note(what + split, std::to_string(number));
  }

  const data::LanguageCorpus& corpus_;
  const data::Tokenizer* tokenizer_;
  bool documents_;
  data::ShardSetWriter& writer_;
  PreparedSet& set_;
  int64_t all_ = 0, written_ = 0;
  data::TextExtent count_;  // of the split that is written
};

/// The tokenizer that was given, or one learned from the split train; nullptr: bytes.
std::unique_ptr<data::Tokenizer> tokenizer_for(const LanguageFlags& flags,
                                               const data::LanguageCorpus& corpus) {
  if (!flags.tokenizer.empty()) return tokenizer_from(flags.tokenizer);
  return data::learn_tokenizer(
      data::parse_token_kind(flags.tokens), [&](const auto& take) {
        for (const data::Bytes text : texts_of(corpus, "train", flags.documents))
          take(data::text_of(text));
      });
}

/// Which files of a folder were read, and how many were not.
void print_files(const std::string& path, const data::LanguageCorpus& corpus) {
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

/// How many bytes a token stands for, and what had none.
void print_tokens(const std::string& folder) {
  const data::LanguageCorpus set(folder, 0, 0);
  fmt::print("\n{}/{}: {}, {} tokens\n", folder, data::kTokenizerFile,
             set.tokenizer()->kind(), set.vocabulary());
  for (const std::string& name : set.splits()) {
    const auto tokens = static_cast<double>(set.split(name).size());
    fmt::print("{:<8} {:.3f} bytes a token", name,
               static_cast<double>(set.bytes(name)) / tokens);
    if (set.tokenizer()->unknown() >= 0)
      fmt::print(", {:.2f} % unknown",
                 100 * static_cast<double>(set.unknown(name)) / tokens);
    fmt::print("\n");
  }
}

void prepare_language(const LanguageFlags& flags) {
  const data::LanguageCorpus corpus(flags.path, flags.valid, flags.test);
  if (corpus.files().empty())
    throw DataError(flags.path, -1, "text, got a set that is prepared already");
  PreparedSet set(flags.out, "language");
  const auto tokenizer = tokenizer_for(flags, corpus);
  {
    data::ShardManifest manifest{"text from " + flags.path, "bytes", 256, {}, {}};
    if (tokenizer) {
      manifest.scheme = "tokenizer", manifest.vocabulary = tokenizer->vocabulary();
      manifest.info["tokenizer"] = data::hash_text(tokenizer->hash());
    }
    if (flags.documents) manifest.info[data::kDocumentsKept] = "kept apart";
    data::ShardSetWriter writer(set.path(), manifest);
    LanguageWriter(corpus, tokenizer.get(), flags.documents, writer, set).write();
    if (tokenizer)
      data::replace_file(set.path() + "/" + data::kTokenizerFile, tokenizer->json());
    writer.commit();
  }
  print_files(flags.path, corpus);
  set.finish();
  if (tokenizer) print_tokens(flags.out);
}

void add_data_language(CLI::App& verb) {
  CLI::App* app = verb.add_subcommand(
      "language", "Text as bytes, pieces of words or words: any text, WikiText");
  const auto flags = std::make_shared<LanguageFlags>();
  add_path(*app, flags->path, "A file, or a folder of them")->required();
  add_out(*app, flags->out);
  add_part(*app, "--valid", flags->valid,
           "The part of a corpus without splits to validate on");
  add_part(*app, "--test", flags->test, "The part, its end, to test on");
  app->add_flag("--documents", flags->documents,
                "Keep documents apart, so that no window goes from one into the next: "
                "files, rows of .jsonl, articles of WikiText");
  add_tokenizer_flag(*app, flags->tokenizer, "in place of a new one")
      ->excludes(add_tokens_flag(*app, flags->tokens, "the text"));
  app->callback([flags] { prepare_language(*flags); });
}

const RegisterVerb data_language_registered({.name = "data language",
                                             .place = 4,
                                             .add = add_data_language});

}  // namespace
}  // namespace lagwise::cli
