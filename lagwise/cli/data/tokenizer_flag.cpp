#include "lagwise/cli/data/tokenizer_flag.h"

#include <filesystem>

#include "lagwise/cli/checks.h"
#include "lagwise/core/errors.h"
#include "lagwise/train/pretrained.h"

namespace lagwise::cli {

CLI::Option* add_tokens_flag(CLI::App& verb, std::string& tokens, const char* what) {
  return verb
      .add_option("--tokens", tokens,
                  std::string("byte; bpe:N: N pieces of words, learned from ") + what +
                      "; word or word:N: its words, or the N most frequent")
      ->check(token_kind())
      ->capture_default_str()
      ->type_name("KIND");
}

CLI::Option* add_tokenizer_flag(CLI::App& verb, std::string& from,
                                const char* instead) {
  return verb
      .add_option(
          "--tokenizer", from,
          std::string("The tokenizer.json of another set, or of Hugging Face's "
                      "tokenizers (byte-level BPE), a set that has one, or a run "
                      "on such a set, ") +
              instead)
      ->check(file_name())
      ->type_name("FILE|SET|RUN");
}

std::unique_ptr<data::Tokenizer> tokenizer_from(const std::string& from) {
  namespace fs = std::filesystem;
  std::error_code none;
  if (!fs::is_directory(from, none)) return data::load_tokenizer(from);
  const std::string file = (fs::path(from) / data::kTokenizerFile).string();
  if (fs::exists(file, none)) return data::load_tokenizer(file);
  const Pretrained run = open_pretrained(from, "--tokenizer");
  if (run.state.tokenizer.empty())
    throw DataError(from, -1,
                    "a run on tokens of a tokenizer, got one that has none: leave "
                    "--tokenizer out");
  return data::parse_tokenizer(run.folder, data::bytes_of(run.state.tokenizer));
}

}  // namespace lagwise::cli
