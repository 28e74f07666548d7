#include "lagwise/data/sources/listops_examples.h"

#include <stdexcept>

#include "lagwise/core/errors.h"
#include "lagwise/data/formats/path_kind.h"
#include "lagwise/data/sets/split_dealer.h"
#include "lagwise/data/sources/listops_expression.h"
#include "lagwise/data/sources/lra_tables.h"

namespace lagwise::data {
namespace {

/// `split` is asked once for every row.
int64_t read_rows(const std::string& file, const std::function<std::string()>& split,
                  const VisitExample& visit) {
  int64_t row = 0;
  const int64_t rows =
      each_listops_row(file, [&](std::string_view expression, int label) {
        Example example;
        try {
          example.first = listops_symbols(expression);
        } catch (const std::invalid_argument& error) {
          throw DataError(
              file, -1, "ListOps in row " + std::to_string(row) + "; " + error.what());
        }
        example.label = label;
        visit(split(), example, -1);
        ++row;
      });
  if (rows == 0) throw DataError(file, -1, "rows of ListOps, got none");
  return rows;
}

}  // namespace

void make_listops_examples(const ListopsMaking& making, const VisitExample& visit) {
  ListopsGenerator generator(making.seed, making.rules);
  const int64_t all = making.train + making.valid + making.test;
  int64_t made = 0;
  const auto make = [&](const std::string& split, int64_t rows) {
    for (int64_t i = 0; i < rows; ++i) {
      const ListopsRow row = generator.next();
      const Example example{row.label, listops_symbols(row.expression), {}};
      visit(split, example, static_cast<double>(++made) / static_cast<double>(all));
    }
  };
  make("test", making.test);
  make("valid", making.valid);
  make("train", making.train);
}

void read_listops_examples(const std::string& path, const VisitExample& visit) {
  if (!is_folder(path)) {
    SplitDealer dealer(0.1, 0.1);
    read_rows(
        path, [&] { return dealer.next(); }, visit);
    return;
  }
  const std::pair<const char*, const char*> files[] = {{"train", "/basic_train.tsv"},
                                                       {"valid", "/basic_val.tsv"},
                                                       {"test", "/basic_test.tsv"}};
  if (!is_there(path + files[0].second))
    throw DataError(path, -1,
                    "basic_train.tsv, basic_val.tsv, basic_test.tsv in the folder");
  for (const auto& [name, file] : files) {
    const char* const split = name;  // clang 14 hands no structured binding to a lambda
    if (is_there(path + file))
      read_rows(
          path + file, [&] { return split; }, visit);
  }
}

}  // namespace lagwise::data
