#include "lagwise/data/sources/lra_tables.h"

#include <charconv>

#include "lagwise/data/formats/delimited.h"
#include "lagwise/data/formats/mapped_file.h"

namespace lagwise::data {
namespace {

int label_of(const DelimitedReader& reader, std::string_view text, int most) {
  if (text.ends_with(".0")) text.remove_suffix(2);
  int label = -1;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), label);
  if (error != std::errc() || end != text.data() + text.size() || label < 0 ||
      label > most)
    reader.fail("a label from 0 to " + std::to_string(most));
  return label;
}

}  // namespace

int64_t each_listops_row(
    const std::string& file,
    const std::function<void(std::string_view expression, int label)>& visit) {
  const MappedFile mapped(file);
  DelimitedReader reader(file, mapped.bytes(), {});
  std::vector<std::string> row;
  if (!reader.next(row)) reader.fail("a row of ListOps, got an empty file");
  if (row.size() != 2) reader.fail("two columns, got " + std::to_string(row.size()));
  const bool header = row[0] == "Source" && row[1] == "Target";
  const size_t expression = header ? 0 : 1, label = header ? 1 : 0;
  int64_t rows = 0;
  for (bool more = header ? reader.next(row) : true; more;
       more = reader.next(row), ++rows)
    visit(row[expression], label_of(reader, row[label], 9));
  return rows;
}

int64_t each_retrieval_row(
    const std::string& file,
    const std::function<void(std::string_view first, std::string_view second,
                             int label)>& visit) {
  const MappedFile mapped(file);
  DelimitedReader reader(file, mapped.bytes(), {});
  int64_t rows = 0;
  for (std::vector<std::string> row; reader.next(row); ++rows) {
    if (row.size() != 5) reader.fail("five columns, got " + std::to_string(row.size()));
    visit(row[3], row[4], label_of(reader, row[0], 1));
  }
  return rows;
}

}  // namespace lagwise::data
