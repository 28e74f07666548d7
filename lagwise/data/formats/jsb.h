#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "lagwise/data/formats/bytes.h"
#include "lagwise/data/music/music.h"

namespace lagwise::data {

/// One chorale: at each sixteenth the pitches of soprano, alto, tenor and bass, -1
/// where a voice rests.
using Chorale = std::vector<std::array<int, 4>>;

/// The Bach chorales with separate voices (Jsb16thSeparated.json):
///
///     {"train": [[[74, 70, 65, 58], ..], ..], "valid": [..], "test": [..]}
///
/// Returns them by split. DataError for anything else, empty splits and chorales
/// included. (Boulanger-Lewandowski et al., ICML 2012.)
std::map<std::string, std::vector<Chorale>> read_jsb(const std::string& file);
std::map<std::string, std::vector<Chorale>> parse_jsb(const std::string& name,
                                                      Bytes bytes);

/// To listen to: four tracks; a pitch that stays is one long note.
Music chorale_music(const Chorale& chorale);

}  // namespace lagwise::data
