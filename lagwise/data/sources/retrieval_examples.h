#pragma once

#include <string>

#include "lagwise/data/sets/examples.h"

namespace lagwise::data {

/// Two texts, as bytes, and whether they belong together.

/// Reads pairs as the Long Range Arena's retrieval task has them (papers of the ACL
/// Anthology Network; 1: one cites the other): tables "label id id text text" without a
/// header, from a folder with <anything>train.tsv, <anything>eval.tsv (or valid, val,
/// dev) and <anything>test.tsv, or one file, of which every tenth row is valid and
/// every ninth of the rest test. DataError names what is wrong.
void read_retrieval_examples(const std::string& path, const VisitExample& visit);

/// Whether a path holds such tables: a .tsv file, or a folder with one.
bool is_retrieval_table(const std::string& path);

struct PassageMaking {
  std::string path;
  int64_t train = 0, valid = 0, test = 0;  ///< pairs of each split
  int64_t length = 0;                      ///< bytes of a passage
  uint64_t seed = 0;
};

/// Makes pairs of passages from a text corpus: of the same article (1) or of two (0),
/// each half of the time. Passages of one article do not overlap. Articles are those of
/// WikiText's files, by their splits; or of any file that marks them as WikiText does;
/// else each .txt file under a folder is one, and one in twenty is valid's, another
/// test's. Articles too
/// short for two passages are passed over. Pair i of a split is a function of the
/// corpus, seed, length and i. DataError for a corpus with fewer than two articles in a
/// split.
void make_passage_examples(const PassageMaking& making, const VisitExample& visit);

}  // namespace lagwise::data
