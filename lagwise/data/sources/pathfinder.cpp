#include "lagwise/data/sources/pathfinder.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <optional>
#include <stdexcept>

#include "lagwise/data/sources/dice.h"
#include "lagwise/data/sources/pathfinder_paddle.h"

namespace lagwise::data {
namespace {

constexpr int64_t kPathfinderStream = 0x5046;  // of the noise: this generator's own
constexpr int kPadding = 1;                    // cells at the border that stay empty
constexpr int kPaddleTries = 3, kSnakeTries = 5;
constexpr int kDistractors = 20;      // paddles in all
constexpr double kTarget = 2 * 0.75;  // brightness of the long snakes,
constexpr double kDistractor = 2;     //   and of the others
constexpr double kCrowded = 1.8;      // two paddles overlap
constexpr double kFull = 0.3;         // a cell counts as taken
constexpr double kLeast = 0.01;       // of the picture must be free for another snake
constexpr int kJoint = Paddle::kLength + Paddle::kMargin;

/// A snake as far as it has grown.
struct Snake {
  Cell start, end;  ///< its tips
  Cell joint;       ///< the place its last paddle turned about
  double angle = 0;
  Picture image, last_room;  ///< the room of the last paddle is not yet in the mask

  explicit Snake(int side) : image(side), last_room(side) {}
};

double reversed(double angle) {
  return angle < 0 ? angle + std::numbers::pi : angle - std::numbers::pi;
}

class Drawing {
 public:
  Drawing(Dice dice, const PathfinderRules& rules)
      : dice_(dice), rules_(rules), mask_(rules.side) {}

  PathfinderImage draw() {
    const int label = dice_.pick(2);
    while (!grow_both()) {
    }
    Picture image = snakes_[0].image;
    stamp_all(image, snakes_[1].image);
    distract(image);
    const auto first = static_cast<size_t>(dice_.pick(2));
    const size_t other = label == 1 ? first : 1 - first;
    stamp_all(image, marker(rules_.side, snakes_[first].start));
    stamp_all(image, marker(rules_.side, snakes_[other].end));
    return {stretched(image), label};
  }

 private:
  static void stamp_all(Picture& onto, const Picture& other) {
    for (size_t i = 0; i < onto.at.size(); ++i)
      onto.at[i] = std::max(onto.at[i], other.at[i]);
  }

  static std::vector<uint8_t> stretched(const Picture& image) {
    const auto [least, most] = std::minmax_element(image.at.begin(), image.at.end());
    std::vector<uint8_t> bytes;
    for (const double x : image.at)
      bytes.push_back(
          static_cast<uint8_t>(std::lround((x - *least) * 255 / (*most - *least))));
    return bytes;
  }

  double whole_degrees(int least, int most) {
    return dice_.between(least, most) * std::numbers::pi / 180;
  }

  // Two long snakes: false where they run into something.

  bool grow_both() {
    mask_ = Picture(rules_.side);
    frame(mask_, kPadding);
    snakes_ = {Snake(rules_.side), Snake(rules_.side)};
    if (!start_first() || !start_second()) return false;
    for (int i = 1; i < rules_.contour_length; ++i)
      for (Snake& snake : snakes_)
        if (!extend(snake, kTarget)) return false;
    stamp_all(mask_, snakes_[1].last_room);
    return true;
  }

  bool start_first() {
    for (int i = 0; i < kPaddleTries; ++i) {
      const double angle = whole_degrees(-180, 179);
      Picture taken = mask_;
      frame(taken, 2 * rules_.seed_distance);
      const std::optional<Cell> free = free_cell(taken, angle);
      if (!free) return false;
      if (place(snakes_[0], *free, angle, kTarget)) return true;
    }
    return false;
  }

  bool start_second() {
    const Cell& first = snakes_[0].start;
    for (int i = 0; i < kPaddleTries; ++i) {
      const double angle = whole_degrees(-180, 179), side = whole_degrees(0, 359);
      const double distance = rules_.seed_distance;
      const Cell start{
          static_cast<int>(std::nearbyint(first.y + distance * std::sin(side))),
          static_cast<int>(std::nearbyint(first.x + distance * std::cos(side)))};
      if (place(snakes_[1], start, angle, kTarget)) return true;
    }
    return false;
  }

  // Short snakes.

  void distract(Picture& image) {
    const int length = rules_.contour_length / 3;
    for (int i = 0; i < kDistractors / length; ++i)
      for (int tries = 0; tries < kSnakeTries; ++tries)
        if (distract_once(image, length)) break;
  }

  bool distract_once(Picture& image, int length) {
    const Picture before = mask_;
    Snake snake(rules_.side);
    bool grown = start_anywhere(snake);
    for (int i = 1; grown && i < length; ++i) grown = extend(snake, kDistractor);
    if (!grown) {
      mask_ = before;
      return false;
    }
    stamp_all(mask_, snake.last_room);
    stamp_all(image, snake.image);
    return true;
  }

  bool start_anywhere(Snake& snake) {
    for (int i = 0; i < kPaddleTries; ++i) {
      const double angle = whole_degrees(-180, 179);
      Picture taken = mask_;
      frame(taken, 1);
      const auto room = std::count_if(mask_.at.begin(), mask_.at.end(),
                                      [](double x) { return x <= kFull; });
      if (static_cast<double>(room) < kLeast * static_cast<double>(mask_.at.size()))
        return false;
      const std::optional<Cell> free = free_cell(taken, angle);
      if (!free) return false;
      if (place(snake, *free, angle, kDistractor)) return true;
    }
    return false;
  }

  // One paddle.

  static void frame(Picture& picture, int wide) {
    for (int y = 0; y < picture.side; ++y)
      for (int x = 0; x < picture.side; ++x)
        if (std::min({y, x, picture.side - 1 - y, picture.side - 1 - x}) < wide)
          picture(y, x) = 1;
  }

  /// A cell where a paddle of this angle finds room, all equally likely.
  std::optional<Cell> free_cell(const Picture& taken, double angle) {
    // What the paddle covers fully, about a middle one cell before its start.
    const Paddle& paddle = paddle_at(angle);
    std::vector<Cell> covered;
    for (int v = 0; v <= 2 * kJoint; ++v)
      for (int u = 0; u <= 2 * kJoint; ++u)
        if (paddle.room(v, u) == 1) covered.push_back({v - kJoint, u - kJoint});
    std::vector<Cell> free;
    for (int y = 0; y < taken.side; ++y)
      for (int x = 0; x < taken.side; ++x)
        if (std::ranges::all_of(covered, [&](const Cell& by) {
              return !taken.holds(y + by.y, x + by.x) ||
                     taken(y + by.y, x + by.x) <= kFull;
            }))
          free.push_back({y, x});
    if (free.empty()) return std::nullopt;
    return dice_.one_of(free);
  }

  /// The first paddle of a snake; false where it would stick out.
  bool place(Snake& snake, const Cell& start, double angle, double brightness) {
    const Cell head = moved(start, angle, Paddle::kLength);
    const Cell joint = moved(head, reversed(angle), kJoint);
    if (!mask_.holds(head.y, head.x) || !mask_.holds(joint.y, joint.x)) return false;
    snake.start = start, snake.joint = joint, snake.angle = angle;
    put_paddle(snake, start, angle, brightness);
    return true;
  }

  void put_paddle(Snake& snake, const Cell& start, double angle, double brightness) {
    const Paddle& paddle = paddle_at(angle);
    stamp(snake.image, paddle.line, start, brightness);
    snake.last_room = Picture(rules_.side);
    stamp(snake.last_room, paddle.room, start);
  }

  /// The odds of a cell, and the angle under which it is seen from the joint.
  struct Candidate {
    Cell cell;
    double angle, odds;
  };

  std::vector<Candidate> candidates(const Cell& joint, double before) const {
    std::vector<Cell> cells;
    const double step = 1.0 / kJoint;  // an arc of one pixel
    for (int i = 0; i * step < 2 * std::numbers::pi; ++i) {
      const double y = joint.y + kJoint * std::sin(i * step);
      const double x = joint.x + kJoint * std::cos(i * step);
      if (y >= 0 && y < rules_.side && x >= 0 && x < rules_.side)
        cells.push_back({static_cast<int>(y), static_cast<int>(x)});
    }
    const auto earlier = [](const Cell& a, const Cell& b) {
      return a.y != b.y ? a.y < b.y : a.x < b.x;
    };
    std::ranges::sort(cells, earlier);
    cells.erase(std::unique(cells.begin(), cells.end()), cells.end());
    std::vector<Candidate> all;
    for (const Cell& cell : cells) {
      const double angle = std::atan2(cell.y - joint.y, cell.x - joint.x);
      const double apart = std::abs(angle - before);
      const double turn = std::min(apart, 2 * std::numbers::pi - apart);
      const double bent = std::min(rules_.continuity * turn, std::numbers::pi / 2);
      const double straight = std::max(0.0, std::cos(bent));
      all.push_back({cell, angle, (1 - nearby(cell)) * straight * straight});
    }
    return all;
  }

  /// The most that stands in a cell or right beside it.
  double nearby(const Cell& cell) const {
    double most = 0;
    for (const auto& [v, u] : {std::pair{0, 0}, {1, 0}, {-1, 0}, {0, 1}, {0, -1}})
      if (mask_.holds(cell.y + v, cell.x + u))
        most = std::max(most, mask_(cell.y + v, cell.x + u));
    return most;
  }

  bool extend(Snake& snake, double brightness) {
    const Cell joint =
        moved(snake.joint, snake.angle, Paddle::kLength + 2 * Paddle::kMargin);
    const std::vector<Candidate> all = candidates(joint, snake.angle);
    double sum = 0;
    for (const Candidate& one : all) sum += one.odds;
    if (sum < 1e-4) return false;
    for (int i = 0; i < kPaddleTries; ++i) {
      const Candidate& chosen = draw_one(all, sum);
      if (crowded(chosen)) continue;
      stamp_all(mask_, snake.last_room);
      put_paddle(snake, chosen.cell, reversed(chosen.angle), brightness);
      snake.joint = joint, snake.angle = chosen.angle, snake.end = chosen.cell;
      return true;
    }
    return false;
  }

  const Candidate& draw_one(const std::vector<Candidate>& all, double sum) {
    const double level = dice_.roll() * sum;
    double passed = 0;
    for (const Candidate& one : all) {
      passed += one.odds;
      if (passed > level) return one;
    }
    return all.front();
  }

  bool crowded(const Candidate& one) const {
    Picture room(rules_.side);
    stamp(room, paddle_at(reversed(one.angle)).room, one.cell);
    for (size_t i = 0; i < room.at.size(); ++i)
      if (mask_.at[i] + room.at[i] >= kCrowded) return true;
    return false;
  }

  Dice dice_;
  const PathfinderRules& rules_;
  Picture mask_;
  std::vector<Snake> snakes_;
};

}  // namespace

Pathfinder::Pathfinder(uint64_t seed, const PathfinderRules& rules)
    : seed_(seed), rules_(rules) {
  const auto expect = [](bool holds, const char* what) {
    if (!holds)
      throw std::invalid_argument(std::string("pathfinder: expected ") + what);
  };
  expect(rules.side >= 4 * rules.seed_distance + 4 && rules.side <= 1024,
         "a side of at least four times the seed distance and 4, at most 1024");
  expect(rules.seed_distance >= 1, "a seed distance of at least 1");
  expect(rules.contour_length >= 3 && rules.contour_length <= rules.side / 2,
         "contours of 3 paddles to half of the side");
  expect(rules.continuity > 0 && rules.continuity <= 4, "a continuity within (0, 4]");
}

PathfinderImage Pathfinder::image(int64_t index) const {
  return Drawing(Dice(Noise(seed_, kPathfinderStream, index).at({})), rules_).draw();
}

}  // namespace lagwise::data
