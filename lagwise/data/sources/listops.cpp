#include "lagwise/data/sources/listops.h"

#include <array>
#include <stdexcept>
#include <vector>

#include "lagwise/data/formats/atomic_file.h"
#include "lagwise/data/formats/fnv1a.h"
#include "lagwise/data/sources/dice.h"
#include "lagwise/data/sources/listops_expression.h"

namespace lagwise::data {
namespace {

constexpr int64_t kListopsStream = 0x4C4F;  // of the noise: this generator's own
constexpr double kOperator = 0.25;
constexpr int64_t kGiveUp = 100000;  // trees in a row without a new one

/// Grows one tree, depth first, writing it as it goes.
class Tree {
 public:
  Tree(Dice dice, const ListopsRules& rules, ListopsRow& row)
      : dice_(dice), rules_(rules), row_(row) {}

  /// The node's value; less than 0 once the tree is too long, when all stops.
  int node(int depth) {
    if (depth >= rules_.max_depth || !dice_.chance(kOperator)) return digit();
    const int count = 2 + dice_.pick(rules_.max_arguments - 1);
    const int op = dice_.pick(4);
    row_.length += 2;
    // The files write each operator as pairs: ( ( ( [OP a ) b ) ] )
    for (int i = 0; i <= count; ++i) row_.expression += "( ";
    row_.expression += kListopsNames[op];
    std::vector<int> values;
    for (int i = 0; i < count; ++i) {
      row_.expression += ' ';
      values.push_back(node(depth + 1));
      if (values.back() < 0) return -1;
      row_.expression += " )";
    }
    row_.expression += " ] )";
    return listops_apply(op, values);
  }

 private:
  int digit() {
    const int value = dice_.pick(10);
    row_.expression += static_cast<char>('0' + value);
    return ++row_.length < rules_.shorter_than ? value : -1;
  }

  Dice dice_;
  const ListopsRules& rules_;
  ListopsRow& row_;
};

}  // namespace

ListopsGenerator::ListopsGenerator(uint64_t seed, const ListopsRules& rules)
    : seed_(seed), rules_(rules) {
  if (rules.max_depth < 1 || rules.max_depth > 100 || rules.max_arguments < 2 ||
      rules.max_arguments > 100 || rules.longer_than < 0 ||
      rules.shorter_than < rules.longer_than + 2)
    throw std::invalid_argument(
        "listops: expected max_depth 1 to 100, max_arguments 2 to 100 and room between "
        "longer_than and shorter_than");
}

bool ListopsGenerator::grow(int64_t tree, ListopsRow& row) const {
  row.expression.clear();
  row.length = 0;
  row.label =
      Tree(Dice(Noise(seed_, kListopsStream, tree).at({})), rules_, row).node(1);
  return row.label >= 0 && row.length > rules_.longer_than &&
         row.length < rules_.shorter_than;
}

ListopsRow ListopsGenerator::next() {
  ListopsRow row;
  for (int64_t tries = 0; tries < kGiveUp; ++tries)
    if (grow(trees_++, row) && seen_.insert(fnv1a(bytes_of(row.expression))).second)
      return row;
  throw std::invalid_argument(
      "listops: expected rules that leave more rows, found none in " +
      std::to_string(kGiveUp) + " trees");
}

void write_listops(const std::string& file, ListopsGenerator& generator, int64_t rows) {
  AtomicFile out(file);
  out.write("Source\tTarget\r\n");
  for (int64_t i = 0; i < rows; ++i) {
    const ListopsRow row = generator.next();
    out.write(row.expression + "\t" + std::to_string(row.label) + "\r\n");
  }
  out.commit();
}

}  // namespace lagwise::data
