#pragma once

#include <string>
#include <vector>

#include "lagwise/data/sets/examples.h"
#include "lagwise/data/sources/text_columns.h"

namespace lagwise::data {

struct TextReading {
  std::string path;
  double valid = 0.1;  ///< of train (aclImdb, and folders without a file for it)
  double test = 0.1;   ///< of a single file
  std::string text_column = {}, label_column = {};  ///< empty: found by their names
};

/// Reads labelled text, as bytes:
///
///     a folder train/{pos,neg}, test/{pos,neg}     aclImdb; label 1 for pos
///     a folder of train, valid, test                tables (split_tables.h)
///     a file                                        one table
///
/// Where no file is valid, a part of train is dealt for it (data/sets/split_dealer.h): aclImdb
/// has 25,000 reviews for training, and the Long Range Arena validates on its test set.
/// A table has a header (data/sources/text_columns.h). Text is the column text, sentence,
/// review or content; labels are the column label, target, class or sentiment, and may
/// be any words. The different labels of train are the classes, in the order of numbers
/// where all are whole numbers, else of their bytes. DataError names what is wrong.
///
/// Returns the names of the classes.
std::vector<std::string> read_text_examples(const TextReading& reading,
                                            const VisitExample& visit);

/// The names of the columns with text, and with labels.
Column text_column(const std::string& asked);
Column label_column(const std::string& asked);

}  // namespace lagwise::data
