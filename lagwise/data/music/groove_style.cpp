#include "lagwise/data/music/groove_style.h"

#include <span>

namespace lagwise::data {
namespace {

/// Where a style comes from. Written for lagwise, after what such bands usually play.
struct Family {
  const char* name;
  int beats;
  bool swing;
  int slow, fast;  // beats a minute
  int hat_pitch;
  const char *kick, *snare, *hat;     // of the verse
  const char *kick2, *snare2, *hat2;  // of the chorus
  std::array<const char*, 3> bass, comping;
};

constexpr int kClosedHat = 42, kRide = 51, kShaker = 82;

const Family kFamilies[] = {
    {"rock",
     4,
     false,
     96,
     140,
     kClosedHat,
     "x.......x.......",
     "....x.......x...",
     "x.o.x.o.x.o.x.o.",
     "x.....x.x.x.....",
     "....x.......x...",
     "x.x.x.x.x.x.x.x.",
     {"r-r-r-r-r-r-r-r-", "r---..r-r---f-r-", "r-r-..r-o-r-..a-"},
     {"l...............", "x.x...x.x.x...x.", "l.....l...l....."}},
    {"funk",
     4,
     false,
     88,
     112,
     kClosedHat,
     "x..x..x...x..x..",
     "....x..o.o..x...",
     "x.o.x.oox.o.x.o.",
     "x..x..x.x.x..x..",
     "....x..o.o..x..o",
     "xoxoxoxoxoxoxoxo",
     {"r..r..o-..r-f.a.", "r-..r.o...rr..f.", "r..o..r.r..o.ta."},
     {"...x..x.....x...", "..x...x...x...x.", "x..x....x..x...."}},
    {"disco",
     4,
     false,
     112,
     128,
     kClosedHat,
     "x...x...x...x...",
     "....x.......x...",
     "o.x.o.x.o.x.o.x.",
     "x...x...x...x...",
     "....x..o....x.o.",
     "oox.oox.oox.oox.",
     {"r.o.r.o.r.o.r.o.", "r-..o-r.r-..o-a.", "r.oor.oor.oof.oo"},
     {"..x...x...x...x.", "l...............", "..xx..x...xx..x."}},
    {"hip hop",
     4,
     false,
     72,
     96,
     kClosedHat,
     "x.....x...x.....",
     "....x.......x...",
     "x.x.x.x.x.x.x.x.",
     "x.x....x..x.....",
     "....x.......x.o.",
     "x.x.xxx.x.x.x.xx",
     {"r-----..r---....", "r--.r--...r-f-..", "r-----r-....a-r-"},
     {"l...............", "l.......x.......", "x.....x.....x..."}},
    {"bossa",
     4,
     false,
     112,
     144,
     kShaker,
     "x.....x.x.....x.",
     "x..x..x...x..x..",
     "x.o.x.o.x.o.x.o.",
     "x.....x.x.....x.",
     "..x..x....x.x...",
     "x.oox.oox.oox.oo",
     {"r-----f-f-----r-", "r-----f-----f-r-", "r-....f-r-....a-"},
     {"x..x..x...x..x..", "..x..x....x..x..", "x.....x...x....."}},
    {"reggae",
     4,
     false,
     70,
     92,
     kClosedHat,
     "........x.......",
     "........x.......",
     "x.o.x.o.x.o.x.o.",
     "x.......x.......",
     "........x.....o.",
     "x.oox.oox.oox.oo",
     {"....r-t-f---r-..", "r-..r-f-..t-r-..", "..r-r---f-..r-a-"},
     {"..x...x...x...x.", "....x.......x...", "..xx..xx..xx..xx"}},
    {"shuffle",
     4,
     true,
     92,
     140,
     kRide,
     "x.......x.......",
     "....x.......x...",
     "x.x.x.x.x.x.x.x.",
     "x.x.....x.x.....",
     "....x..o....x...",
     "x.x.x.x.x.x.x.x.",
     {"r---t---f---o---", "r-r-t-t-f-f-a-a-", "r---r-f-r---t-a-"},
     {"..x...x...x...x.", "....x.......x...", "l.....x........."}},
    {"jazz",
     4,
     true,
     120,
     180,
     kRide,
     "o...o...o...o...",
     "....o..o....o...",
     "x...x.o.x...x.o.",
     "x...o...o...o.x.",
     "..o.....o..o..o.",
     "x...x.x.x...x.x.",
     {"r---t---f---a---", "r---f---o---a---", "r---f---t---a---"},
     {"x.....x.........", "......x.......x.", "l.....x.....x..."}},
    {"train",
     4,
     false,
     96,
     124,
     kClosedHat,
     "x.......x.......",
     "ooxoooxoooxoooxo",
     "................",
     "x.......x...x...",
     "ooxoooxoooxoooxx",
     "x...x...x...x...",
     {"r-......f-......", "r-..r-..f-..a-..", "r-......f-..f-a-"},
     {"....x.......x...", "..x...x...x...x.", "....x.x.....x.x."}},
    {"half time",
     4,
     false,
     120,
     160,
     kClosedHat,
     "x...........x...",
     "........x.......",
     "x...x...x...x...",
     "x.....x.....x...",
     "........x......o",
     "x.x.x.x.x.x.x.x.",
     {"r-----------r-a-", "r-r-....r---....", "r---o---..r-f---"},
     {"l...............", "l.......l.......", "x...x...x...x..."}},
    {"waltz",
     3,
     false,
     88,
     160,
     kRide,
     "x...........",
     "....x...x...",
     "x...o...o...",
     "x.........x.",
     "....x...x.o.",
     "x.o.o.o.o.o.",
     {"r-----------", "r-----f---..", "r---f---a---"},
     {"....x...x...", "l...........", "....x.x.x..."}},
    {"slow six",
     3,
     true,
     60,
     84,
     kClosedHat,
     "x.....x.....",
     "........x...",
     "x.x.x.x.x.x.",
     "x...x.x.....",
     "........x.o.",
     "x.xxx.xxx.xx",
     {"r-----f-a-..", "r---r-t-f---", "r-----r-f-a-"},
     {"x.x.x.x.x.x.", "l...........", "l.....l....."}},
};

const std::vector<int> kMajor[] = {{0, 4, 5, 3},
                                   {0, 5, 3, 4},
                                   {0, 3, 4, 4},
                                   {1, 4, 0, 0},
                                   {0, 3, 0, 4},
                                   {5, 3, 0, 4},
                                   {0, 0, 3, 3, 4, 3, 0, 4},
                                   {0, 5, 1, 4},
                                   {3, 4, 2, 5},
                                   {0, 2, 3, 4}};
const std::vector<int> kMinor[] = {
    {0, 5, 2, 6}, {0, 6, 5, 4}, {0, 3, 4, 0}, {0, 0, 3, 4}, {0, 5, 3, 4},
    {0, 3, 6, 2}, {5, 6, 0, 0}, {0, 6, 3, 4}, {0, 2, 5, 4}, {3, 0, 4, 0}};
const char* const kFills[] = {"11.12.23", "1.11..44", "11223344", "1.2.3.4.",
                              "..11..22", "1...2.4.", "11112233", "...1.124"};
const char* const kForms[] = {"AABA", "ABAB", "AABB", "ABAC", "AABACA", "ABABCB"};

// One sixteenth of a line becomes loud or silent, never the first.
void change_one(std::string& line, Dice& dice) {
  const auto at =
      size_t{1} + static_cast<size_t>(dice.pick(static_cast<int>(line.size()) - 1));
  line[at] = line[at] == '.' ? 'o' : '.';
}

std::array<DrumBar, 2> make_drums(const Family& family, Dice& dice) {
  std::array<DrumBar, 2> bars{DrumBar{family.kick, family.snare, family.hat},
                              DrumBar{family.kick2, family.snare2, family.hat2}};
  for (DrumBar& bar : bars) {
    if (dice.chance(0.7)) change_one(bar.kick, dice);
    if (dice.chance(0.4)) change_one(bar.snare, dice);
    if (dice.chance(0.4)) change_one(bar.hat, dice);
  }
  return bars;
}

// Two different lines of three.
std::array<std::string, 2> two_of(std::span<const char* const, 3> lines, size_t steps,
                                  Dice& dice) {
  const int first = dice.pick(3), second = (first + 1 + dice.pick(2)) % 3;
  std::array<std::string, 2> two{lines[static_cast<size_t>(first)],
                                 lines[static_cast<size_t>(second)]};
  for (std::string& line : two) line.resize(steps, '.');
  return two;
}

}  // namespace

GrooveStyle make_groove_style(Dice dice, int number) {
  constexpr int kBassPrograms[] = {32, 33, 34, 35, 38};
  constexpr int kChordPrograms[] = {0, 2, 4, 5, 11, 16, 24, 25, 26, 27, 48, 80};
  // Families in turn, so that a few styles are already different.
  const Family& family = kFamilies[static_cast<size_t>(number) % std::size(kFamilies)];
  const auto steps = size_t{4} * static_cast<size_t>(family.beats);
  GrooveStyle style;
  style.name = family.name + (" " + std::to_string(number));
  style.beats = family.beats;
  style.swing = family.swing;
  style.bpm = dice.between(family.slow, family.fast);
  style.minor = dice.chance(0.4);
  style.sevenths = dice.chance(0.4);
  style.hat_pitch = family.hat_pitch;
  style.drums = make_drums(family, dice);
  style.fill = dice.one_of(kFills);
  style.crash_every = dice.chance(0.5) ? 8 : 4;
  style.bass = two_of(family.bass, steps, dice);
  style.bass_program = dice.one_of(kBassPrograms);
  style.comping = two_of(family.comping, steps, dice);
  style.chord_program = dice.one_of(kChordPrograms);
  style.chord_low = dice.between(50, 62);
  for (auto& progression : style.progressions)
    progression = style.minor ? dice.one_of(kMinor) : dice.one_of(kMajor);
  for (int i = 0; i < 2; ++i) style.forms.emplace_back(dice.one_of(kForms));
  style.section_bars = dice.chance(0.7) ? 8 : 4;
  return style;
}

}  // namespace lagwise::data
