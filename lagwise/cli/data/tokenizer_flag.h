#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "lagwise/data/text/tokenizer.h"

namespace lagwise::cli {

/// --tokens: what the tokens are to be (data/text/token_kind.h), learned from `what`.
CLI::Option* add_tokens_flag(CLI::App& verb, std::string& tokens, const char* what);

/// --tokenizer: a tokenizer that is there already, `instead` of what.
CLI::Option* add_tokenizer_flag(CLI::App& verb, std::string& from, const char* instead);

/// What it names: a tokenizer.json, a prepared set that has one, or a run (or one of its
/// checkpoints) that was trained on such a set. DataError where it is none of them, or
/// reads bytes.
std::unique_ptr<data::Tokenizer> tokenizer_from(const std::string& from);

}  // namespace lagwise::cli
