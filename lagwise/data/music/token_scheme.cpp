#include "lagwise/data/music/token_scheme.h"

#include <cmath>
#include <utility>

#include "lagwise/core/registry.h"
#include "lagwise/data/formats/smf.h"

namespace lagwise::data {
namespace {

Registry<TokenSchemeRow>& registry() {
  static Registry<TokenSchemeRow> registry("token scheme");
  return registry;
}

}  // namespace

RegisterTokenScheme::RegisterTokenScheme(TokenSchemeRow row) { registry().add(row); }

const std::vector<TokenSchemeRow>& token_schemes() { return registry().rows(); }

std::unique_ptr<TokenScheme> make_token_scheme(std::string_view text) {
  Spec spec(text);
  auto scheme = registry().find(spec.name()).make(spec);
  spec.finish();
  return scheme;
}

std::unique_ptr<TokenScheme> token_scheme_of(const std::vector<std::string>& words) {
  for (const TokenSchemeRow& row : token_schemes())
    for (const std::string& text :
         row.variants ? row.variants() : std::vector{std::string(row.name)}) {
      auto scheme = make_token_scheme(text);
      if (scheme->vocabulary().words() == words) return scheme;
    }
  return nullptr;
}

Music TokenScheme::decode(std::span<const int32_t> ids) const {
  const std::unique_ptr<MusicDecoder> decoder = this->decoder();
  // A token leads on by a bar at most, and a MIDI file has a last tick.
  const int64_t bar = int64_t{4} * decoder->music.ticks_per_beat;
  for (const int32_t id : ids) {
    if (decoder->now() > kSmfLastTick - 2 * bar) break;
    decoder->take(id);
  }
  decoder->finish();
  tidy(decoder->music);
  return std::move(decoder->music);
}

int64_t TokenScheme::first_bars(std::span<const int32_t> ids, int64_t bars) const {
  const std::unique_ptr<MusicDecoder> decoder = this->decoder();
  const int64_t bar = int64_t{4} * decoder->music.ticks_per_beat;
  int64_t count = 0;
  for (const int32_t id : ids) {
    decoder->take(id);
    // In bars: a count of them in ticks may be more than fits.
    if (id == end() || decoder->now() / bar >= bars) break;
    ++count;
  }
  return count;
}

void TokenLoss::keep(double onset, double duration, double velocity) {
  ++kept;
  const double share = 1.0 / static_cast<double>(kept);
  onset_error += (std::abs(onset) - onset_error) * share;
  duration_error += (std::abs(duration) - duration_error) * share;
  velocity_error += (std::abs(velocity) - velocity_error) * share;
}

void TokenLoss::add(const TokenLoss& other) {
  notes += other.notes;
  kept += other.kept;
  if (other.kept > 0) {
    const double share = static_cast<double>(other.kept) / static_cast<double>(kept);
    onset_error += (other.onset_error - onset_error) * share;
    duration_error += (other.duration_error - duration_error) * share;
    velocity_error += (other.velocity_error - velocity_error) * share;
  }
  for (const auto& [what, count] : other.changed) changed[what] += count;
}

}  // namespace lagwise::data
