#pragma once

#include <string>

#include "lagwise/data/sets/examples.h"
#include "lagwise/data/sources/listops.h"

namespace lagwise::data {

struct ListopsMaking {
  int64_t train = 0, valid = 0, test = 0;  ///< rows of each split
  uint64_t seed = 0;
  ListopsRules rules;
};

/// Makes ListOps: symbols as data/sources/listops_expression.h numbers them, labels 0 to 9.
/// No row comes twice. test comes first, then valid, then train, so that both stay
/// what they are when train grows.
void make_listops_examples(const ListopsMaking& making, const VisitExample& visit);

/// Reads ListOps from a folder with basic_train.tsv, basic_val.tsv and basic_test.tsv
/// (those that are there, train for sure), or from one file, of which every tenth row
/// is valid and every ninth of the rest test (data/sets/split_dealer.h). DataError for what is
/// missing, empty or no ListOps.
void read_listops_examples(const std::string& path, const VisitExample& visit);

}  // namespace lagwise::data
