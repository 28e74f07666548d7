#include "lagwise/cli/encodings/table.h"

#include <fmt/format.h>

namespace lagwise::cli {
namespace {

constexpr const char* kHead = R"(# Positional encodings

Made by `lagwise encodings --markdown`; a test keeps this page equal to it. Each encoding is
`x.cpp` in this folder and nothing outside it knows its name. An encoding hands data to
attention (`ops/encoded.h`) and says how it wants to be used:

- **exact**, **causal**, **full**: serves exact attention, causal and full linear attention.
  What is not there cannot be, but for one thing: `shaw`, `huang` and `transformer_xl` put a
  vector for each lag beside the key, and what a query makes of it is no factor of the
  weights of linear attention. `rope:xpos=true` fades each plane at a rate of its own: that
  is a decay of causal linear attention and no bias by lag (`xpos=scores` puts it into the
  scores, for exact attention). `lrpe` with a decay could serve full linear attention and
  does not: weights that fade to both sides are summed by FFT and divided by their own sum,
  but a rotation makes them signed.
- In linear attention a bias by lag is a decay of the state where it falls by a constant
  factor per step and attention is causal (`alibi`, `decay`, every `decay=`). All others
  (`t5`, `kerple`, and any bias in full attention) take N log N by FFT, need a denominator,
  and decode from every key and value, as exact attention does.
- **stage**: on the *input*, or on queries and keys *before* or *after* the feature map of
  linear attention, or on the *score*.
- **denominator** of linear attention: from the *same* features, or *separate*, from the
  un-encoded ones, because encoded features are signed.
- **axes**: of the largest grid it takes. **longest**: the furthest position; *table*: the
  size of one, *horizon*: must be told one.

`lagwise encodings show NAME[:options]` draws what each makes of the lag.

)";

std::string paper_link(const std::string& paper) {
  if (!paper.starts_with("arXiv:")) return paper;
  return fmt::format("[{}](https://arxiv.org/abs/{})", paper, paper.substr(6));
}

}  // namespace

std::vector<EncodingFacts> encoding_facts() {
  std::vector<EncodingFacts> all;
  const auto traits_of = [](std::string_view text) {
    return make_encoding(text, {.heads = 4, .dim = 8})->traits();
  };
  for (const EncodingRow& row : encodings()) {
    const Traits traits = traits_of(row.text());
    all.push_back({std::string(row.name), std::string(row.summary),
                   std::string(row.paper), std::string(row.text()), traits,
                   row.widest.empty() ? traits.dims : traits_of(row.widest).dims,
                   encoding_options(row)});
  }
  return all;
}

std::string stage_name(const Traits& traits) {
  switch (traits.stage) {
    case Traits::Stage::input:
      return "input";
    case Traits::Stage::before_map:
      return "before_map";
    case Traits::Stage::after_map:
      return "after_map";
    default:
      return "score";
  }
}

std::string denominator_name(const Traits& traits) {
  return traits.denominator == Traits::Denominator::same ? "same" : "separate";
}

std::string encodings_markdown(const std::vector<EncodingFacts>& all) {
  const auto yes = [](bool x) { return x ? "yes" : ""; };
  std::string text = kHead;
  text +=
      "| name | what | exact | causal | full | stage | denominator | axes | random | "
      "longest | paper |\n|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const EncodingFacts& f : all)
    text += fmt::format(
        "| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", f.name,
        f.summary, yes(f.traits.exact), yes(f.traits.linear_causal),
        yes(f.traits.linear_full), stage_name(f.traits), denominator_name(f.traits),
        f.axes, yes(f.traits.stochastic), f.traits.longest, paper_link(f.paper));
  text +=
      "\n## Options\n\nWritten `name:key=value,...`\n\n| encoding | option | default "
      "| expected |\n|---|---|---|---|\n";
  for (const EncodingFacts& f : all)
    for (const Spec::Option& option : f.options)
      text += fmt::format("| `{}` | `{}` | {} | {} |\n", f.name, option.key,
                          option.fallback.empty() ? "must be given" : option.fallback,
                          option.expected);
  return text;
}

}  // namespace lagwise::cli
