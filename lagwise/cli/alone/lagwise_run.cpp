// `lagwise-run`: an exported model in a program that needs nothing else, not even a
// shared library. It knows lagwise.h alone.
//
//     lagwise-run song.lagwise --prompt "ROMEO:" --length 200 --temperature 0.8 --seed 1
//
// Tokens that are bytes are printed as text, all others as numbers.

#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "lagwise/runtime/lagwise.h"

namespace {

constexpr int kOther = 1, kUsage = 2, kData = 3, kDiverged = 4;
constexpr int64_t kBytes = 256;

constexpr const char* kHelp =
    "Usage: lagwise-run FILE [--prompt TEXT] [--length N] [--temperature T] [--seed "
    "N]\n"
    "                        [--threads N]\n"
    "Lets a model that `lagwise export` wrote go on from a prompt: text where its "
    "tokens\n"
    "are bytes, else numbers with spaces between. --length 200, --temperature 1 (0: "
    "the\n"
    "most likely token), --seed 0, --threads 1 unless given.\n";

struct Options {
  std::string file, prompt;
  int64_t length = 200;
  int threads = 1;
  lagwise_sampling sampling = lagwise_sampling_default();
};

[[noreturn]] void fail(int code, const std::string& what) {
  std::fprintf(stderr, "lagwise-run: %s\n", what.c_str());
  std::exit(code);
}

double number(const std::string& flag, const char* text, double least, double most) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != '\0' || !(value >= least && value <= most))
    fail(kUsage, flag + ": expected a number from " + std::to_string(int64_t(least)) +
                     " to " + std::to_string(int64_t(most)) + ", got '" + text + "'");
  return value;
}

Options read_options(int count, char** words) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string word = words[i];
    if (word == "--help" || word == "-h") {
      std::fputs(kHelp, stdout);
      std::exit(0);
    }
    if (word.rfind("--", 0) != 0) {
      if (!options.file.empty())
        fail(kUsage,
             "expected one FILE, got '" + options.file + "' and '" + word + "'");
      options.file = word;
      continue;
    }
    if (i + 1 == count) fail(kUsage, word + ": expected a value behind it; see --help");
    const char* const value = words[++i];
    if (word == "--prompt")
      options.prompt = value;
    else if (word == "--length")
      options.length = static_cast<int64_t>(number(word, value, 0, 1e9));
    else if (word == "--temperature")
      options.sampling.temperature = number(word, value, 0, 1000);
    else if (word == "--seed")
      options.sampling.seed = static_cast<uint64_t>(number(word, value, 0, 1e9));
    else if (word == "--threads")
      options.threads = static_cast<int>(number(word, value, 1, 256));
    else
      fail(kUsage,
           "expected --prompt, --length, --temperature, --seed or --threads, got '" +
               word + "'");
  }
  if (options.file.empty()) fail(kUsage, "expected FILE; see --help");
  return options;
}

/// Bytes of a text; of other vocabularies the numbers in it.
std::vector<int64_t> prompt_tokens(const std::string& prompt, bool text) {
  std::vector<int64_t> tokens;
  if (text) {
    for (const char c : prompt.empty() ? std::string("\n") : prompt)
      tokens.push_back(static_cast<unsigned char>(c));
    return tokens;
  }
  const char* at = prompt.c_str();
  for (char* end = nullptr;; at = end) {
    const long long id = std::strtoll(at, &end, 10);
    if (end == at) break;
    tokens.push_back(id);
  }
  if (*at != '\0')
    fail(kUsage, "--prompt: expected numbers of tokens with spaces between, got '" +
                     prompt + "'");
  return tokens.empty() ? std::vector<int64_t>{0} : tokens;
}

void print_token(int64_t token, bool text) {
  if (text)
    std::putchar(static_cast<int>(token));
  else
    std::printf("%lld ", static_cast<long long>(token));
  std::fflush(stdout);
}

/// The model's file is read page by page: whoever cuts it short meanwhile takes them
/// away. Only what a handler of signals may call.
void end_of_pages(int) {
  constexpr char kLine[] =
      "lagwise-run: the file was cut short while it was read, or the disk no longer "
      "gives it\n";
  const ssize_t ignored = write(STDERR_FILENO, kLine, sizeof kLine - 1);
  static_cast<void>(ignored);
  _exit(kData);
}

}  // namespace

int main(int count, char** words) {
  std::signal(SIGBUS, end_of_pages);
  const Options options = read_options(count, words);
  char why[512] = "";
  lagwise_model* const model = lagwise_open(options.file.c_str(), why, sizeof why);
  if (model == nullptr) fail(kData, why);
  lagwise_set_threads(model, options.threads);
  const bool text = lagwise_vocabulary(model) == kBytes &&
                    std::strstr(lagwise_words(model), "\"words\":[]") != nullptr;
  const std::vector<int64_t> prompt = prompt_tokens(options.prompt, text);
  lagwise_state* const state = lagwise_start(model);
  if (state == nullptr) fail(kOther, "out of memory");
  if (lagwise_prefill(model, state, prompt.data(), prompt.size()) != 0)
    fail(kUsage, "--prompt: expected tokens from 0 to " +
                     std::to_string(lagwise_vocabulary(model) - 1) +
                     ", no more than the model has positions");
  for (int64_t i = 0; i < options.length; ++i) {
    const int64_t token = lagwise_draw(model, state, &options.sampling);
    if (token < 0) fail(kDiverged, "the model gives no numbers: a logit is NaN");
    print_token(token, text);
    if (lagwise_step(model, state, token) != 0) break;
  }
  std::putchar('\n');
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    fail(kOther, "cannot write the output");
  lagwise_end(state);
  lagwise_close(model);
}
