#pragma once

#include <string>

#include "lagwise/data/sets/examples.h"

namespace lagwise::data {

struct TextReading {
  std::string path;
  double valid = 0.1;  ///< of train (aclImdb, and folders without a file for it)
  double test = 0.1;   ///< of a single file
  std::string text_column = {}, label_column = {};  ///< empty: found by their names
};

/// Reads labelled text, its bytes as tokens:
///
///     a folder train/{pos,neg}, test/{pos,neg}     aclImdb; label 1 for pos
///     a folder of train, valid (or val, dev), test  tables with .tsv or .csv
///     a file                                        one table
///
/// Where no file is valid, an evenly spread part of train is (data/sets/split_dealer.h): aclImdb
/// has 25,000 reviews for training, and the Long Range Arena validates on its test set.
/// A table has a header. Text is the column text, sentence, review or content; labels
/// are the column label, target, class or sentiment. DataError names what is wrong.
void read_text_examples(const TextReading& reading, const VisitExample& visit);

}  // namespace lagwise::data
