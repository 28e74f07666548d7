// `lagwise generate`: what a trained model writes. A language model goes on from the
// prompt, token by token as it comes; an encoder_decoder hears a source, or several, and
// answers; a masked model fills the gaps of a text (cli/generate/fill.h); a model of music
// goes on from a MIDI file, and what it wrote is drawn and played.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <stdexcept>

#include "lagwise/cli/checks.h"
#include "lagwise/cli/generate/asked_text.h"
#include "lagwise/cli/generate/engine.h"
#include "lagwise/cli/generate/fill.h"
#include "lagwise/cli/generate/music.h"
#include "lagwise/cli/generate/sampling_flags.h"
#include "lagwise/cli/run_flags.h"
#include "lagwise/cli/terminal/progress_line.h"
#include "lagwise/cli/terminal/stop_signal.h"
#include "lagwise/cli/terminal/utf8.h"
#include "lagwise/cli/verbs.h"
#include "lagwise/core/errors.h"
#include "lagwise/data/formats/smf.h"
#include "lagwise/data/music/music_corpus.h"
#include "lagwise/models/model.h"
#include "lagwise/study/card.h"
#include "lagwise/tasks/padded.h"
#include "lagwise/train/generation.h"

namespace lagwise::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kMostSamples = 4096;

struct GenerateFlags {
  RunFlags run;
  std::string prompt, prompt_file, out;
  std::string source, source_file;         // of models that listen
  int length = 0, count = 1;               // length 0: not given
  int prompt_tokens = 0, prompt_bars = 0;  // 0: all
  SamplingFlags sampling;
  EngineFlags engine;
  FillFlags fill;
  bool json = false, silent = false;
};

/// Before the work, so that a wrong name costs nothing.
void make_folder(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (!failed && !std::filesystem::is_directory(folder, failed) && !failed)
    failed = std::make_error_code(std::errc::not_a_directory);
  if (failed)
    throw std::runtime_error("cannot make the folder " + folder + ": " +
                             failed.message());
}

class Generate {
 public:
  explicit Generate(const GenerateFlags& flags)
      : flags_(flags),
        engine_(flags.run, flags.engine),
        run_(engine_.run()),
        listens_(model_row(run_.model_config().model).listens) {
    if (model_row(run_.model_config().model).fills)
      throw std::invalid_argument(
          "this model fills in what is hidden: expected --fill \"The [MASK] sat\"");
    const bool prompted = flags.source.empty() && flags.source_file.empty();
    if (!prompted && !listens_)
      throw std::invalid_argument(
          "--source: expected a run of a model that listens, as those of pairs and "
          "harmonise do; this one goes on from --prompt");
    const std::string& file = prompted ? flags.prompt_file : flags.source_file;
    std::string asked = prompted ? flags.prompt : flags.source;
    if (data::is_midi_name(file))
      asked = file;  // the task reads it
    else if (!file.empty())
      asked = asked_text(file);
    if (!flags.out.empty()) make_folder(flags.out);
    find_text(asked);
    const bool lines = !file.empty() && text_->end() >= 0;
    asked_ = lines ? asked_lines(file, asked, kMostSamples / flags.count)
                   : std::vector<std::string>{asked};
    sampling_ = flags.sampling.sampling();
    scheme_ = text_->music();
    live_ = !flags_.json && !listens_ && !scheme_;
    if (scheme_ && data::is_midi_name(asked)) like_ = data::read_smf(asked);
  }

  void run() {
    Writing writing = plan();
    const StopSignal listening;
    if (live_) begin_sample(0);
    const Written written = write_on(
        engine_.start(std::ssize(writing.prompts), writing.source), text_, writing,
        [&](const std::vector<int64_t>& tokens) { return took(tokens, writing); });
    engine_.save();
    progress_.clear();
    const std::vector<Sample> samples = samples_of(written);
    flags_.json ? print_json(samples, written) : print_rest(samples);
    if (!flags_.out.empty())
      for (const Sample& sample : samples) write_files(sample);
    report(written, writing);
    if (StopSignal::asked())
      throw Interrupted(fmt::format("stopped after {} tokens", written.steps));
  }

 private:
  /// What the tokens stand for. The checkpoint knows it; the data is read only where
  /// the prompt is a piece of it.
  void find_text(const std::string& asked) {
    own_text_ = make_token_text(run_.recipe.data.task, run_.words, run_.tokenizer);
    text_ = own_text_.get();
    if (text_ && !text_->asks_for_data(asked)) return;
    open_later(run_);
    text_ = run_.task.get();
  }

  /// What is shown before a continuation: the text that was given, as much of it as was.
  std::string shown_prompt(int64_t sample) const {
    const bool whole = flags_.prompt_tokens == 0 || listens_ || scheme_;
    return shown_text(whole ? asked(sample) : text_->decode(prompt_tokens(sample)));
  }

  MusicSample music_sample(const Sample& sample) const {
    return {sample.prompt_tokens, sample.tokens,
            like_.tracks.empty() ? nullptr : &like_};
  }

  void write_files(const Sample& sample) const {
    std::string files = write_card(flags_.out, run_, sampling_, sample);
    if (scheme_) {
      const auto path =
          std::filesystem::path(flags_.out) / card_name(sample, sampling_);
      const MusicFiles music =
          write_music(path.string(), *scheme_, music_sample(sample), !flags_.silent);
      files += " " + music.midi + (music.wav.empty() ? "" : " " + music.wav);
    }
    fmt::print(stderr, "-> {}\n", files);
  }

  /// Samples of one text stand together.
  const std::string& asked(int64_t sample) const {
    return asked_[static_cast<size_t>(sample / flags_.count)];
  }

  /// What is given: of a long one, as much as is asked for.
  std::vector<int64_t> prompt_tokens(int64_t sample) const {
    std::vector<int64_t> tokens = text_->encode(asked(sample));
    if (flags_.prompt_tokens > 0)
      tokens.resize(std::min(tokens.size(), static_cast<size_t>(flags_.prompt_tokens)));
    if (flags_.prompt_bars == 0) return tokens;
    const int64_t some = text_->first_bars(tokens, flags_.prompt_bars);
    if (tokens.empty())
      throw std::invalid_argument(
          "--prompt-bars: expected the music they are of, with --prompt or --source");
    tokens.resize(static_cast<size_t>(some));
    return tokens;
  }

  Writing plan() {
    Writing writing;
    writing.sampling = sampling_;
    writing.stops = flags_.sampling.stop_tokens(*text_);
    writing.log_probabilities = flags_.sampling.log_probabilities;
    writing.length = flags_.length > 0 ? flags_.length : 512;
    writing.take_last = !flags_.engine.save_state.empty();
    if (listens_) {
      plan_answers(writing);
      return writing;
    }
    // A language model needs something to go on from: text begins after a line break.
    const std::vector<int64_t> tokens = prompt_tokens(0);
    const bool empty = tokens.empty() && !text_->grammar() && !engine_.goes_on();
    writing.prompts.assign(static_cast<size_t>(flags_.count),
                           empty ? text_->encode("\n") : tokens);
    return writing;
  }

  /// An answer ends where the model says so, or is as long as what was heard.
  void plan_answers(Writing& writing) {
    std::vector<std::vector<int64_t>> heard;
    int64_t longest = 0;
    for (int64_t i = 0; i < std::ssize(asked_) * flags_.count; ++i) {
      heard.push_back(prompt_tokens(i));
      longest = std::max(longest, std::ssize(heard.back()));
      if (heard.back().empty())
        throw std::invalid_argument(
            "this model answers what it hears: expected --source, got none");
    }
    source_.source = padded(heard, 0);
    source_.source_lengths = lengths_of(heard);
    writing.source = &source_;
    writing.prompts.assign(heard.size(), {text_->begin()});
    const bool ends = text_->end() >= 0;
    if (ends) writing.stops.push_back({text_->end()});
    if (flags_.length == 0)
      writing.length = ends ? run_.model_config().length : longest;
    if (ends && longest > run_.model_config().length)
      fmt::print(stderr, "a source of {} tokens; the model was trained on up to {}\n",
                 longest, run_.model_config().length);
  }

  void begin_sample(int64_t index) const {
    if (flags_.count > 1)
      fmt::print("{}--- sample {} of {} ---\n", index > 0 ? "\n" : "", index + 1,
                 std::ssize(asked_) * flags_.count);
    if (!listens_ && !scheme_) fmt::print("{}", shown_prompt(index));
    std::fflush(stdout);
  }

  /// The first sample is printed while it is written, the others after it.
  bool took(const std::vector<int64_t>& tokens, const Writing& writing) {
    using Clock = std::chrono::steady_clock;
    if (steps_++ == 0) began_ = Clock::now();
    const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
    if (!live_ && steps_ > 1)
      progress_.show(
          fmt::format("writing, {:.0f} tokens/s",
                      static_cast<double>((steps_ - 1) * std::ssize(tokens)) / seconds),
          static_cast<double>(steps_) / static_cast<double>(writing.length));
    if (live_ && tokens[0] >= 0) {
      fmt::print("{}", utf8_.feed(text_->decode({tokens[0]})));
      std::fflush(stdout);
    }
    return !StopSignal::asked();
  }

  std::vector<Sample> samples_of(const Written& written) const {
    std::vector<Sample> samples;
    for (const std::vector<int64_t>& tokens : written.tokens) {
      const int64_t index = std::ssize(samples);
      samples.push_back({index, shown_prompt(index), shown_text(text_->decode(tokens)),
                         tokens, prompt_tokens(index)});
      if (flags_.sampling.log_probabilities)
        samples.back().log_probabilities =
            written.log_probabilities[samples.size() - 1];
      if (scheme_)
        samples.back().music = music_json(*scheme_, music_sample(samples.back()),
                                          run_.model_config().length);
    }
    return samples;
  }

  void print_rest(const std::vector<Sample>& samples) {
    if (live_) fmt::print("{}\n", utf8_.finish());
    for (size_t i = live_ ? 1 : 0; i < samples.size(); ++i) {
      begin_sample(samples[i].index);
      if (scheme_) {
        fmt::print("{}", shown_music(*scheme_, music_sample(samples[i])));
        continue;
      }
      fmt::print("{}{}", samples[i].text, samples[i].text.ends_with('\n') ? "" : "\n");
    }
    std::fflush(stdout);
  }

  static double rate(const Written& written) {
    double tokens = 0;
    for (const auto& sample : written.tokens)
      tokens += static_cast<double>(sample.size());
    return tokens / std::max(written.seconds, 1e-9);
  }

  void print_json(const std::vector<Sample>& samples, const Written& written) const {
    Json array = Json::array();
    for (const Sample& sample : samples)
      array.push_back(card_json(run_, sampling_, sample));
    const Json all = {{"samples", array},
                      {"tokens_per_second", rate(written)},
                      {"prompt_seconds", written.prompt_seconds},
                      {"seconds", written.seconds},
                      {"state_bytes", written.state_bytes},
                      {"engine", engine_.name()}};
    fmt::print("{}\n", all.dump(2));
  }

  void report(const Written& written, const Writing& writing) const {
    fmt::print(stderr,
               "{} tokens{} in {:.2f} s: {:.0f} tokens/s; a prompt of {} in "
               "{:.2f} s; state {:.1f} kB; engine {}\n",
               written.steps,
               writing.prompts.size() > 1
                   ? fmt::format(" each of {} samples", writing.prompts.size())
                   : "",
               written.seconds, rate(written), writing.prompts[0].size(),
               written.prompt_seconds, static_cast<double>(written.state_bytes) / 1e3,
               engine_.name());
  }

  const GenerateFlags& flags_;
  Engine engine_;
  Run& run_;
  bool listens_;                         ///< a source is heard, no prompt continued
  std::vector<std::string> asked_;       ///< the prompt, or the sources
  std::unique_ptr<TokenText> own_text_;  ///< where no data was read
  const TokenText* text_ = nullptr;
  Sampling sampling_;
  bool live_ = false;  ///< the first sample is printed as it comes
  const data::TokenScheme* scheme_ = nullptr;  ///< of music
  data::Music like_;                           ///< the file to go on from
  Batch source_;
  Utf8 utf8_;
  int64_t steps_ = 0;
  std::chrono::steady_clock::time_point began_;  ///< when the first token was there
  ProgressLine progress_;
};

void add_generate(CLI::App& app) {
  CLI::App* verb = app.add_subcommand("generate", "Let a trained model write");
  const auto flags = std::make_shared<GenerateFlags>();
  add_run_flags(*verb, flags->run);
  verb->get_option("RUN")->description(
      "The folder of a run, or a file that `lagwise export` wrote");
  CLI::Option* prompt = verb->add_option(
      "--prompt", flags->prompt,
      "What to go on from: a text; of music, a MIDI file or a piece such as test:3");
  CLI::Option* prompt_file = verb->add_option("--prompt-file", flags->prompt_file,
                                              "The same, from a file; - from stdin")
                                 ->check(file_name())
                                 ->excludes(prompt);
  CLI::Option* source =
      verb->add_option(
              "--source", flags->source,
              "What to answer, of models that listen (--prompt will do too): a text; "
              "of "
              "harmonise a soprano, \"C5:4 D5:8\", or valid:3 for that of a chorale")
          ->excludes(prompt)
          ->excludes(prompt_file);
  verb->add_option("--source-file", flags->source_file,
                   "The same, from a file, of pairs a text a line; - from stdin")
      ->check(file_name())
      ->excludes(source)
      ->excludes(prompt)
      ->excludes(prompt_file);
  CLI::Option* tokens =
      verb->add_option(
              "--prompt-tokens", flags->prompt_tokens,
              "Give only the first so many tokens of the prompt; all unless given")
          ->check(whole_number(1, kMostCount));
  verb->add_option(
          "--prompt-bars", flags->prompt_bars,
          "Of music: only the first so many bars, of four beats; of harmonise, "
          "of the soprano")
      ->check(whole_number(1, kMostCount))
      ->excludes(tokens);
  verb->add_option("--length", flags->length,
                   "Tokens to write; 512 unless given, of answers as many as were "
                   "heard, or up to the end and no more than were trained on")
      ->check(whole_number(1, kMostCount));
  add_sampling_flags(*verb, flags->sampling);
  add_engine_flags(*verb, flags->engine);
  verb->add_option("--count", flags->count, "Samples to write, together")
      ->check(whole_number(1, kMostSamples))
      ->capture_default_str();
  verb->add_option(
          "--out", flags->out,
          "Also write text and a JSON card of each sample to this folder, "
          "such as RUN/samples; of music a MIDI file too and, with fluidsynth, "
          "its sound")
      ->check(file_name());
  verb->add_flag("--no-sound", flags->silent,
                 "Write no sound, though fluidsynth is here");
  add_fill_flags(*verb, flags->fill);
  verb->add_flag("--json", flags->json, "Print one JSON object instead of text");
  verb->callback([flags] {
    if (!flags->engine.save_state.empty() && flags->count > 1)
      throw std::invalid_argument("--save-state: expected one sample, got --count " +
                                  std::to_string(flags->count));
    if (!flags->fill.text.empty()) {
      if (!flags->out.empty()) make_folder(flags->out);
      return run_fill(flags->run, flags->fill, flags->out, flags->json);
    }
    Generate(*flags).run();
  });
}

const RegisterVerb generate_registered({.name = "generate",
                                        .place = 4,
                                        .add = add_generate});

}  // namespace
}  // namespace lagwise::cli
